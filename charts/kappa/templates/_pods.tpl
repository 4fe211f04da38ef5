{{/* On which nodes a pod may be, and what it may displace. Takes (dict "root" .) and maybe "beside", as kappa.pod. */}}
{{- define "kappa.placement" -}}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if .beside }}
affinity:
  podAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "kappa.selector" .beside | nindent 12 }}
{{- else if .root.Values.affinity }}
affinity:
  {{- toYaml .root.Values.affinity | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What all our pods have. Takes (dict "root" . "component" ... "generation" ...), and maybe "beside": the scope of a pod
     whose ReadWriteOnce volume this one mounts, too, so that both must be on one node, and "account": the service account
     with whose token it asks the cluster's API. */}}
{{- define "kappa.pod" -}}
{{- $isSpark := dig .component "driverMemory" "" .root.Values.jobs -}}
{{- $account := .account | default (ternary (include "kappa.fullname" .root) "" (ne $isSpark "")) -}}
{{- with $account -}}
serviceAccountName: {{ . }}
{{ end -}}
automountServiceAccountToken: {{ or (not (empty .account)) (and (ne $isSpark "") (eq .root.Values.spark.mode "kubernetes")) }}
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- include "kappa.placement" . }}
topologySpreadConstraints:
{{- if .root.Values.topologySpreadConstraints }}
  {{- toYaml .root.Values.topologySpreadConstraints | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "kappa.selector" . | nindent 8 }}
{{- end }}
{{- end -}}

{{- define "kappa.podmeta" -}}
labels:
  {{- include "kappa.labels" . | nindent 2 }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "kappa.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Of a container with the release's image, or `image`. Takes (dict "root" . "image" ...). */}}
{{- define "kappa.container" -}}
image: {{ .image | default (include "kappa.image" .root) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- include "kappa.restricted" . | nindent 2 }}
{{- end -}}

{{/* Where checkpoints and tables are, if not on the pod's volume. */}}
{{- define "kappa.storageenv" -}}
{{- with .Values.storage.checkpoints }}
- {name: KAPPA_CHECKPOINTS, value: {{ . | quote }}}
{{- end }}
{{- with .Values.storage.delta }}
- {name: KAPPA_DELTA, value: {{ . | quote }}}
{{- end }}
{{- if hasPrefix "s3a:" (.Values.storage.checkpoints | default .Values.storage.delta) }}
{{- with .Values.storage.s3 }}
{{- with .endpoint }}
- {name: AWS_ENDPOINT_URL, value: {{ . | quote }}}
{{- end }}
- {name: AWS_REGION, value: {{ .region | quote }}}
{{- with .secret }}
{{- if .name }}
- {name: AWS_ACCESS_KEY_ID, valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .idKey }}}}}
- {name: AWS_SECRET_ACCESS_KEY, valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .secretKey }}}}}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The user of a component, as `kappa acl` names it. Takes (dict "root" . "component" "detector"). */}}
{{- define "kappa.user" -}}
{{- $others := dict "all" "jobs" "topics" "administrator" "toolbox" "administrator" "test" "administrator" "maintenance" "administrator" "savepoints" "administrator" "upgrade" "administrator" "promotion" "administrator" "console" "operator" -}}
{{ get $others .component | default .component }}
{{- end -}}

{{/* The secrets of a component, each as {name, key, file}, as JSON: it reads them as files (KAPPA_SECRETS). */}}
{{- define "kappa.credentials" -}}
{{- $found := list -}}
{{- $user := include "kappa.user" . -}}
{{- with .root.Values.kafka.security -}}
{{- if hasPrefix "SASL" .protocol -}}
{{- $name := printf "%s%s" .userPrefix $user -}}
{{- if not .userPrefix -}}
{{- $_ := required "kafka.security.username: is missing; SASL needs it, or userPrefix" .username -}}
{{- $name = required "kafka.security.passwordSecret.name: is missing; SASL needs it, or userPrefix" .passwordSecret.name -}}
{{- end -}}
{{- $found = append $found (dict "name" $name "key" .passwordSecret.key "file" "kappa_kafka_sasl_password") -}}
{{- end -}}
{{- end -}}
{{- if has .component (list "indexer" "all" "toolbox" "console" "promotion" "test") -}}
{{- with .root.Values.elasticsearch -}}
{{- if .passwordSecret.name -}}
{{- $found = append $found (dict "name" .passwordSecret.name "key" .passwordSecret.key "file" "kappa_elasticsearch_password") -}}
{{- end -}}
{{- if .apiKeySecret.prefix -}}
{{- $found = append $found (dict "name" (printf "%s%s" .apiKeySecret.prefix $user) "key" .apiKeySecret.key "file" "kappa_elasticsearch_api_key") -}}
{{- else if .apiKeySecret.name -}}
{{- $found = append $found (dict "name" .apiKeySecret.name "key" .apiKeySecret.key "file" "kappa_elasticsearch_api_key") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ toJson $found }}
{{- end -}}

{{/* How to reach Kafka and Elasticsearch, and as whom. Takes (dict "root" . "component" ...). */}}
{{- define "kappa.env" -}}
- {name: KAPPA_KAFKA_BOOTSTRAP, value: {{ include "kappa.bootstrap" .root | quote }}}
- {name: KAPPA_ELASTICSEARCH_URL, value: {{ include "kappa.elasticsearch" .root | quote }}}
{{- if ne (include "kappa.credentials" .) "[]" }}
- {name: KAPPA_SECRETS, value: /etc/kappa/secrets}
{{- end }}
{{- with .root.Values.kafka.security }}
{{- if ne .protocol "PLAINTEXT" }}
- {name: KAPPA_KAFKA_SECURITY_PROTOCOL, value: {{ .protocol }}}
{{- end }}
{{- if hasPrefix "SASL" .protocol }}
- {name: KAPPA_KAFKA_SASL_MECHANISM, value: {{ .mechanism }}}
{{- if .userPrefix }}
- {name: KAPPA_KAFKA_SASL_USERNAME, value: {{ printf "%s%s" .userPrefix (include "kappa.user" $) | quote }}}
- {name: KAPPA_PRINCIPAL_PREFIX, value: {{ .userPrefix | quote }}}
{{- else }}
- {name: KAPPA_KAFKA_SASL_USERNAME, value: {{ .username | quote }}}
{{- end }}
{{- end }}
{{- if .caSecret.name }}
- {name: KAPPA_KAFKA_SSL_CA, value: /etc/kappa/kafka-ca/{{ .caSecret.key }}}
{{- end }}
{{- if or .clientSecret.name (and .userPrefix (eq .protocol "SSL")) }}
- {name: KAPPA_KAFKA_SSL_CERTIFICATE, value: /etc/kappa/kafka-client/{{ .clientSecret.certificateKey }}}
- {name: KAPPA_KAFKA_SSL_KEY, value: /etc/kappa/kafka-client/{{ .clientSecret.keyKey }}}
{{- end }}
{{- end }}
{{- with .root.Values.elasticsearch }}
{{- with .user }}
- {name: KAPPA_ELASTICSEARCH_USER, value: {{ . | quote }}}
{{- end }}
{{- if and .caSecret.name (has $.component (list "indexer" "all" "toolbox" "console" "promotion" "test")) }}
- {name: KAPPA_ELASTICSEARCH_CA, value: /etc/kappa/elasticsearch-ca/{{ .caSecret.key }}}
{{- end }}
{{- end }}
{{- $variables := dict "tls.crt" "CERTIFICATE" "tls.key" "KEY" "ca.crt" "CA" "token" "TOKEN_FILE" }}
{{- range include "kappa.metricsfiles" . | fromJsonArray }}
- {name: KAPPA_METRICS_{{ get $variables .file }}, value: /etc/kappa/metrics/{{ .file }}}
{{- end }}
{{- if .root.Values.topicsMap }}
- {name: KAPPA_TOPICS_FILE, value: /etc/kappa/map/topics.yaml}
{{- end }}
{{- if .root.Values.indicesFile }}
- {name: KAPPA_INDEXER_INDICES, value: /etc/kappa/map/indices.yaml}
{{- end }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Secrets that are files as they are, by the folder below /etc/kappa, as JSON. Takes the same. */}}
{{- define "kappa.secrets" -}}
{{- $secrets := dict -}}
{{- with .root.Values.kafka.security -}}
{{- with .caSecret.name }}{{ $_ := set $secrets "kafka-ca" . }}{{ end -}}
{{- if and .userPrefix (eq .protocol "SSL") }}{{ $_ := set $secrets "kafka-client" (printf "%s%s" .userPrefix (include "kappa.user" $)) -}}
{{- else if .clientSecret.name }}{{ $_ := set $secrets "kafka-client" .clientSecret.name }}{{ end -}}
{{- end -}}
{{- if has .component (list "indexer" "all" "toolbox" "console" "promotion" "test") -}}
{{- with .root.Values.elasticsearch.caSecret.name }}{{ $_ := set $secrets "elasticsearch-ca" . }}{{ end -}}
{{- end -}}
{{ toJson $secrets }}
{{- end -}}

{{/* The files by which jobs are asked, and by which the console asks them, each as {name, key, file}, as JSON: what asks
     them has no need of their key. Takes the same. */}}
{{- define "kappa.metricsfiles" -}}
{{- $found := list -}}
{{- $isJob := hasKey .root.Values.jobs .component -}}
{{- if or $isJob (eq .component "console") -}}
{{- with .root.Values.metrics -}}
{{- $tls := .tlsSecret -}}
{{- if and $tls.name $isJob -}}
{{- $found = append $found (dict "name" $tls.name "key" $tls.certificateKey "file" "tls.crt") -}}
{{- $found = append $found (dict "name" $tls.name "key" $tls.keyKey "file" "tls.key") -}}
{{- else if $tls.name -}}
{{- $found = append $found (dict "name" $tls.name "key" $tls.caKey "file" "ca.crt") -}}
{{- end -}}
{{- if .tokenSecret.name -}}
{{- $found = append $found (dict "name" .tokenSecret.name "key" .tokenSecret.key "file" "token") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ toJson $found }}
{{- end -}}

{{- define "kappa.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if ne (include "kappa.credentials" .) "[]" }}
- {name: secrets, mountPath: /etc/kappa/secrets, readOnly: true}
{{- end }}
{{- if ne (include "kappa.metricsfiles" .) "[]" }}
- {name: metrics, mountPath: /etc/kappa/metrics, readOnly: true}
{{- end }}
{{- range $folder, $_ := include "kappa.secrets" . | fromJson }}
- {name: {{ $folder }}, mountPath: /etc/kappa/{{ $folder }}, readOnly: true}
{{- end }}
{{- if or .root.Values.topicsMap .root.Values.indicesFile }}
- {name: map, mountPath: /etc/kappa/map, readOnly: true}
{{- end }}
{{- with .root.Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kappa.volumes" -}}
- {name: tmp, emptyDir: {}}
{{- with include "kappa.credentials" . | fromJsonArray }}
# As files: a process reads one again when it is refused, and no environment has it.
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range . }}
      - secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: {{ .file }}}]}
      {{- end }}
{{- end }}
{{- with include "kappa.metricsfiles" . | fromJsonArray }}
- name: metrics
  projected:
    defaultMode: 0440
    sources:
      {{- range . }}
      - secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: {{ .file }}}]}
      {{- end }}
{{- end }}
{{- range $folder, $secret := include "kappa.secrets" . | fromJson }}
- {name: {{ $folder }}, secret: {secretName: {{ $secret }}, defaultMode: 0440}}
{{- end }}
{{- if or .root.Values.topicsMap .root.Values.indicesFile }}
- {name: map, configMap: {name: {{ include "kappa.fullname" .root }}-topics}}
{{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Of a command that reads what jobs keep, with a Spark of its own. Takes (dict "root" . "driverMemory" ...). */}}
{{- define "kappa.commandenv" -}}
- {name: KAPPA_DRIVER_MEMORY, value: {{ .driverMemory }}}
- {name: KAPPA_SPARK_MASTER, value: "local[1,4]"}
- {name: KAPPA_SHUFFLE_PARTITIONS, value: {{ .root.Values.spark.shufflePartitions | quote }}}
{{- with .root.Values.spark.conf }}
- {name: KAPPA_SPARK_CONF, value: {{ toJson . | quote }}}
{{- end }}
{{- with include "kappa.storageenv" .root | trim }}
{{ . }}
{{- end }}
{{- with include "kappa.optionalenv" .root }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Of a command that must know which jobs there are. */}}
{{- define "kappa.optionalenv" -}}
{{- if .Values.jobs.rules.enabled -}}
- {name: KAPPA_OPTIONAL_JOBS, value: rules}
{{- end -}}
{{- end -}}

{{/* The pod of a Job: one command. Takes (dict "root" . "component" ... "generation" ... "args" (list ...) "resources" ...),
     and maybe "image", "beside" (as kappa.pod), "env" (more of it, as text), "restartPolicy", and "claim": then it has a
     home, on that claim, or of its own where that is empty. */}}
{{- define "kappa.task" -}}
metadata:
  {{- include "kappa.podmeta" . | nindent 2 }}
spec:
  {{- include "kappa.pod" . | nindent 2 }}
  restartPolicy: {{ .restartPolicy | default "Never" }}
  containers:
    - name: {{ .component }}
      {{- include "kappa.container" . | nindent 6 }}
      args: {{ toJson .args }}
      env:
        {{- include "kappa.env" . | nindent 8 }}
        {{- with .env }}
        {{- . | nindent 8 }}
        {{- end }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      volumeMounts:
        {{- include "kappa.mounts" . | nindent 8 }}
        {{- if hasKey . "claim" }}
        - {name: home, mountPath: /var/lib/kappa}
        {{- end }}
  volumes:
    {{- include "kappa.volumes" . | nindent 4 }}
    {{- if .claim }}
    - {name: home, persistentVolumeClaim: {claimName: {{ .claim }}}}
    {{- else if hasKey . "claim" }}
    - {name: home, emptyDir: {}}
    {{- end }}
{{- end -}}
