"""The table of jobs: each job of the chain, once. docs/tutorial/your-own-job.md adds one.

A row says what a job reads and writes, where its code is and in which application it runs. The command line, the graph
of the chain, replay plans, savepoints, progress, preflight and the ports of `/metrics` follow from it; compose, chart,
Prometheus and the docs are compared with it by tests. It imports no job: the command line starts without Spark.
"""

from infra.contract.jobs import Job, JobTable, Topics

JOBS = JobTable(
    (
        Job(
            "enrichment",
            reads=(Topics.TELEMETRY,),
            beside=("events.retry", "inventory", "lateness"),
            writes=("events", "events.late", "events.rejected"),
            watermarks="events",
            decides="lateness",
            code="jobs.enrichment.job:TRANSFORM",
            settings="jobs.enrichment.settings:EnrichmentSettings",
            realtime="jobs.enrichment.realtime:run",
        ),
        Job(
            "statistics",
            reads=("events",),
            writes=("statistics", "statistics.early", "events.late", "events.rejected"),
            code="jobs.statistics.job:FOLD",
            settings="jobs.statistics.settings:StatisticsSettings",
            state_settings=("windows",),
        ),
        Job(
            "detector",
            reads=("statistics",),
            writes=("novelties", "events.rejected"),
            code="jobs.detector.job:FOLD",
            settings="jobs.detector.settings:DetectorSettings",
            state_settings=("window_seconds",),
        ),
        Job(
            "incidents",
            reads=("novelties",),
            writes=("incidents", "events.rejected"),
            code="jobs.incidents.job:FOLD",
            application="detector",  # novelties are few: a Spark application of its own would cost more than its work
        ),
        Job(
            "rules",
            reads=("events",),
            writes=("alerts", "events.rejected"),
            code="jobs.rules.job:FOLD",
            settings="jobs.rules.settings:RulesSettings",
            optional=True,
        ),
        Job(
            "archive",
            reads=(Topics.ARCHIVED,),
            writes=(),
            sink="delta",
            code="jobs.archive.job:TABLES",
            queries="jobs.archive.tables:queries",
        ),
        Job(
            "indexer",
            reads=(Topics.INDEXED,),
            writes=("events.rejected",),
            sink="elasticsearch",
            code="jobs.indexer.job:run",
            settings="jobs.indexer.settings:IndexerSettings",
        ),
        Job(
            "notifier",
            reads=("incidents", "alerts", "novelties"),
            beside=("notifications",),
            writes=("notifications", "events.rejected"),
            sink="people",
            code="jobs.notifier.job:run",
            settings="jobs.notifier.settings:NotifierSettings",
            optional=True,
        ),
    )
)
