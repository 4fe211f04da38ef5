{{/* Spark's configuration of a job in mode kubernetes, as JSON. $(...) is filled in by Kubernetes. */}}
{{- define "kappa.sparkconf" -}}
{{- $values := .root.Values -}}
{{- $conf := dict -}}
{{- if eq $values.spark.mode "kubernetes" -}}
{{- $conf = dict
    "spark.kubernetes.namespace" .root.Release.Namespace
    "spark.kubernetes.container.image" (.image | default (include "kappa.image" .root))
    "spark.kubernetes.container.image.pullPolicy" $values.image.pullPolicy
    "spark.kubernetes.authenticate.executor.serviceAccountName" (printf "%s-executor" (include "kappa.fullname" .root))
    "spark.authenticate" "true"
    "spark.network.crypto.enabled" "true"
    "spark.network.crypto.cipher" "AES/GCM/NoPadding"
    "spark.io.encryption.enabled" "true"
    "spark.kubernetes.driver.pod.name" "$(POD_NAME)"
    "spark.kubernetes.executor.podNamePrefix" "$(POD_NAME)"
    "spark.kubernetes.executor.podTemplateFile" "/etc/kappa/executor/executor.yaml"
    "spark.kubernetes.executor.deleteOnTermination" "true"
    "spark.driver.host" "$(SPARK_LOCAL_IP)"
    "spark.driver.port" "7078"
    "spark.driver.blockManager.port" "7079"
    "spark.blockManager.port" "7079"
    "spark.executor.instances" (toString $values.spark.executors.instances)
    "spark.executor.cores" (toString $values.spark.executors.cores)
    "spark.executor.memory" $values.spark.executors.memory
    "spark.executor.memoryOverhead" $values.spark.executors.memoryOverhead
-}}
{{- with $values.storage.s3.secret -}}
{{- if .name -}}
{{- $_ := set $conf "spark.kubernetes.executor.secretKeyRef.AWS_ACCESS_KEY_ID" (printf "%s:%s" .name .idKey) -}}
{{- $_ := set $conf "spark.kubernetes.executor.secretKeyRef.AWS_SECRET_ACCESS_KEY" (printf "%s:%s" .name .secretKey) -}}
{{- end -}}
{{- end -}}
{{/* An executor writes its driver's jars there, too. */}}
{{- $claim := include "kappa.claim" . -}}
{{- $volume := printf "spark.kubernetes.executor.volumes.%s.home" (ternary "persistentVolumeClaim" "emptyDir" (ne $claim "")) -}}
{{- $_ := set $conf (printf "%s.mount.path" $volume) "/var/lib/kappa" -}}
{{- if $claim -}}
{{- $_ := set $conf (printf "%s.options.claimName" $volume) $claim -}}
{{- end -}}
{{- end -}}
{{ merge (deepCopy $values.spark.conf) $conf | toJson }}
{{- end -}}

{{/* The claim of a job's home; empty if everything is in an object store, or the job keeps nothing. */}}
{{- define "kappa.claim" -}}
{{- $storage := .root.Values.storage -}}
{{- if or (has .component (list "indexer" "notifier")) (and $storage.checkpoints $storage.delta) -}}
{{- else if $storage.existingClaim -}}
{{ $storage.existingClaim }}
{{- else -}}
{{ include "kappa.jobname" . }}
{{- end -}}
{{- end -}}
