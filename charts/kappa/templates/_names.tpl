{{- define "kappa.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels that never change. Takes (dict "root" . "component" "detector" "generation" "live"). */}}
{{- define "kappa.selector" -}}
app.kubernetes.io/name: kappa
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with .generation }}
kappa/generation: {{ . }}
{{- end }}
{{- end -}}

{{- define "kappa.labels" -}}
{{ include "kappa.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{/* The live generation's jobs have the plain names. */}}
{{- define "kappa.jobname" -}}
{{- $middle := eq .generation "live" | ternary "" (printf "-%s" .generation) -}}
{{ include "kappa.fullname" .root }}{{ $middle }}-{{ eq .component "all" | ternary "jobs" .component }}
{{- end -}}

{{/* Of the service of a job: the same, whatever the profile calls its Deployment. */}}
{{- define "kappa.servicename" -}}
{{- $middle := eq .generation "live" | ternary "" (printf "-%s" .generation) -}}
{{ include "kappa.fullname" .root }}{{ $middle }}-{{ .component }}
{{- end -}}

{{- define "kappa.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end -}}
{{- end -}}

{{- define "kappa.bootstrap" -}}
{{- if .Values.kafka.enabled -}}
{{ include "kappa.fullname" . }}-kafka:9092
{{- else -}}
{{ required "kafka.bootstrap: is missing; give host:port of your Kafka, or set kafka.enabled" .Values.kafka.bootstrap }}
{{- end -}}
{{- end -}}

{{- define "kappa.elasticsearch" -}}
{{- if .Values.elasticsearch.enabled -}}
http://{{ include "kappa.fullname" . }}-elasticsearch:9200
{{- else -}}
{{ required "elasticsearch.url: is missing; give the URL of your Elasticsearch, or set elasticsearch.enabled" .Values.elasticsearch.url }}
{{- end -}}
{{- end -}}

{{/* The port of a URL. */}}
{{- define "kappa.port" -}}
{{- regexFind ":[0-9]+" (trimPrefix "https:" . | trimPrefix "http:") | trimPrefix ":" | default (hasPrefix "https" . | ternary 443 80) -}}
{{- end -}}

{{/* What runs: the live generation, and those beside it, as JSON. */}}
{{- define "kappa.generations" -}}
{{- $live := ternary (list (dict "name" "live")) list .Values.live -}}
{{ concat $live .Values.generations | toJson }}
{{- end -}}

{{/* The jobs of a generation in the profile, by name, as JSON. Takes (dict "root" . "planned" an entry of generations).
     In the profile `small` one pod runs those that are planned. */}}
{{- define "kappa.jobs" -}}
{{- $jobs := dict -}}
{{- $small := eq .root.Values.profile "small" -}}
{{- range $name, $job := .root.Values.jobs -}}
{{- $wanted := $job.enabled -}}
{{- if and $.planned.jobs (not $small) -}}
{{- $wanted = has $name $.planned.jobs -}}
{{- end -}}
{{- if and $wanted (eq (eq $name "all") $small) -}}
{{- $_ := set $jobs $name $job -}}
{{- end -}}
{{- end -}}
{{ toJson $jobs }}
{{- end -}}

{{/* "true" if every pod reaches checkpoints and tables. */}}
{{- define "kappa.sharedstorage" -}}
{{ or (ne .Values.storage.existingClaim "") (and (ne .Values.storage.checkpoints "") (ne .Values.storage.delta "")) }}
{{- end -}}
