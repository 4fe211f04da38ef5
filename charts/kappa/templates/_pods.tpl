{{/* What all our pods have. Takes (dict "root" . "component" ... "generation" ...). */}}
{{- define "kappa.pod" -}}
{{- $isSpark := dig .component "driverMemory" "" .root.Values.jobs -}}
{{- if $isSpark -}}
serviceAccountName: {{ include "kappa.fullname" .root }}
{{ end -}}
automountServiceAccountToken: {{ and (ne $isSpark "") (eq .root.Values.spark.mode "kubernetes") }}
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
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
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
{{- end -}}

{{/* How to reach Kafka and Elasticsearch. */}}
{{- define "kappa.env" -}}
- {name: KAPPA_KAFKA_BOOTSTRAP, value: {{ include "kappa.bootstrap" . | quote }}}
- {name: KAPPA_ELASTICSEARCH_URL, value: {{ include "kappa.elasticsearch" . | quote }}}
{{- with .Values.kafka.security }}
{{- if ne .protocol "PLAINTEXT" }}
- {name: KAPPA_KAFKA_SECURITY_PROTOCOL, value: {{ .protocol }}}
{{- end }}
{{- if hasPrefix "SASL" .protocol }}
- {name: KAPPA_KAFKA_SASL_MECHANISM, value: {{ .mechanism }}}
- {name: KAPPA_KAFKA_SASL_USERNAME, value: {{ required "kafka.security.username: is missing; SASL needs it" .username | quote }}}
- name: KAPPA_KAFKA_SASL_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ required "kafka.security.passwordSecret.name: is missing; SASL needs it" .passwordSecret.name }}, key: {{ .passwordSecret.key }}}
{{- end }}
{{- if .caSecret.name }}
- {name: KAPPA_KAFKA_SSL_CA, value: /etc/kappa/kafka-ca/{{ .caSecret.key }}}
{{- end }}
{{- if .clientSecret.name }}
- {name: KAPPA_KAFKA_SSL_CERTIFICATE, value: /etc/kappa/kafka-client/{{ .clientSecret.certificateKey }}}
- {name: KAPPA_KAFKA_SSL_KEY, value: /etc/kappa/kafka-client/{{ .clientSecret.keyKey }}}
{{- end }}
{{- end }}
{{- with .Values.elasticsearch }}
{{- with .user }}
- {name: KAPPA_ELASTICSEARCH_USER, value: {{ . | quote }}}
{{- end }}
{{- if .passwordSecret.name }}
- name: KAPPA_ELASTICSEARCH_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ .passwordSecret.name }}, key: {{ .passwordSecret.key }}}
{{- end }}
{{- if .apiKeySecret.name }}
- name: KAPPA_ELASTICSEARCH_API_KEY
  valueFrom:
    secretKeyRef: {name: {{ .apiKeySecret.name }}, key: {{ .apiKeySecret.key }}}
{{- end }}
{{- if .caSecret.name }}
- {name: KAPPA_ELASTICSEARCH_CA, value: /etc/kappa/elasticsearch-ca/{{ .caSecret.key }}}
{{- end }}
{{- end }}
{{- if .Values.topicsMap }}
- {name: KAPPA_TOPICS_FILE, value: /etc/kappa/map/topics.yaml}
{{- end }}
{{- if .Values.indicesFile }}
- {name: KAPPA_INDEXER_INDICES, value: /etc/kappa/map/indices.yaml}
{{- end }}
{{- end -}}

{{/* Secrets that are files, by the folder below /etc/kappa, as JSON. */}}
{{- define "kappa.secrets" -}}
{{- $secrets := dict -}}
{{- with .Values.kafka.security.caSecret.name }}{{ $_ := set $secrets "kafka-ca" . }}{{ end -}}
{{- with .Values.kafka.security.clientSecret.name }}{{ $_ := set $secrets "kafka-client" . }}{{ end -}}
{{- with .Values.elasticsearch.caSecret.name }}{{ $_ := set $secrets "elasticsearch-ca" . }}{{ end -}}
{{ toJson $secrets }}
{{- end -}}

{{- define "kappa.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- range $folder, $_ := include "kappa.secrets" . | fromJson }}
- {name: {{ $folder }}, mountPath: /etc/kappa/{{ $folder }}, readOnly: true}
{{- end }}
{{- if or .Values.topicsMap .Values.indicesFile }}
- {name: map, mountPath: /etc/kappa/map, readOnly: true}
{{- end }}
{{- end -}}

{{- define "kappa.volumes" -}}
- {name: tmp, emptyDir: {}}
{{- range $folder, $secret := include "kappa.secrets" . | fromJson }}
- {name: {{ $folder }}, secret: {secretName: {{ $secret }}, defaultMode: 0440}}
{{- end }}
{{- if or .Values.topicsMap .Values.indicesFile }}
- {name: map, configMap: {name: {{ include "kappa.fullname" . }}-topics}}
{{- end }}
{{- end -}}
