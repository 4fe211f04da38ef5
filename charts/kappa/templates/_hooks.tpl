{{/* Annotations of what must be there before the topics are applied. With a bundled Kafka nothing can come before the
     release itself: then the topics' job is an ordinary one, and the jobs wait for it. */}}
{{- define "kappa.hook" -}}
{{- if not .root.Values.kafka.enabled -}}
helm.sh/hook: pre-install,pre-upgrade,pre-rollback
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation
{{- end -}}
{{- end -}}
