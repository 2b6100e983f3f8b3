{{/* The standard variables of OpenTelemetry, where traces are asked for. */}}
{{- define "landwaiter.traceEnv" -}}
{{- with .Values.tracing }}
{{- if .endpoint }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ .endpoint | quote }}}
- {name: OTEL_EXPORTER_OTLP_PROTOCOL, value: {{ .protocol | quote }}}
- {name: OTEL_RESOURCE_ATTRIBUTES, value: "k8s.namespace.name=$(POD_NAMESPACE),k8s.pod.name=$(POD_NAME)"}
{{- with .sampler }}
- {name: OTEL_TRACES_SAMPLER, value: {{ . | quote }}}
{{- end }}
{{- if ne (toString .samplerArg) "" }}
- {name: OTEL_TRACES_SAMPLER_ARG, value: {{ .samplerArg | quote }}}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "landwaiter.args" -}}
- serve
- --own-namespace=$(POD_NAMESPACE)
{{- with .Values.clusterResourceNamespace }}
- --cluster-resource-namespace={{ . }}
{{- end }}
- --cluster-role=reference-reader={{ include "landwaiter.fullname" . }}-reference-reader
{{- if .Values.operator.enabled }}
- --cluster-role=operated-tenants={{ include "landwaiter.fullname" . }}-operated-tenants
{{- end }}
- --tls-secret={{ include "landwaiter.tlsSecret" . }}
- --service-name={{ include "landwaiter.fullname" . }}
{{- if .Values.provider.create }}
{{- if .Values.tls.rotate }}
- --rotate-certificates
{{- range .Values.tls.extraDNSNames }}
- --certificate-dns-name={{ . }}
{{- end }}
{{- else }}
- --provider-ca=/etc/landwaiter/provider-ca/ca.crt
{{- end }}
{{- range (include "landwaiter.providers" . | fromYaml).providers }}
- --provider-object={{ .name }}={{ .path }}
{{- end }}
{{- with .Values.provider.url }}
- --provider-url={{ . }}
{{- end }}
{{- if .Values.rbac.create }}
- --cluster-role=provider-suffix=-provider
{{- end }}
{{- end }}
{{- range .Values.clientCA.secrets }}
- --client-ca=secret/{{ . }}
{{- end }}
{{- range .Values.clientCA.files }}
- --client-ca={{ . }}
{{- end }}
{{- range .Values.clientCA.names }}
- --client-name={{ . }}
{{- end }}
{{- if .Values.clientCA.insecureNoClientAuth }}
- --insecure-no-client-auth
{{- end }}
- --timeout=verify={{ sub (mul .Values.provider.verifyTimeoutSeconds 1000) 500 }}ms
- --timeout=mutate={{ sub (mul .Values.provider.mutateTimeoutSeconds 1000) 200 }}ms
{{- if .Values.mutation.dropTag }}
- --mutate-drop-tag
{{- end }}
{{- with .Values.cache.bytes }}
- --limit=cache-bytes={{ int64 . }}
{{- end }}
{{- with .Values.cache.passTTL }}
- --ttl=pass={{ . }}
{{- end }}
{{- with .Values.cache.denyTTL }}
- --ttl=deny={{ . }}
{{- end }}
{{- with .Values.cache.tagTTL }}
- --ttl=tag={{ . }}
{{- end }}
{{- if .Values.reports.enabled }}
- --reports
{{- end }}
{{- with .Values.exceptions.maxDuration }}
- --max-exception={{ . }}
{{- end }}
{{- with .Values.exceptions.maxDelegation }}
- --max-delegation={{ . }}
{{- end }}
{{- if .Values.breakGlass.enabled }}
- --break-glass={{ default "24h" .Values.breakGlass.maxDuration }}
{{- end }}
{{- if .Values.warmUp.enabled }}
- --warm-up
{{- end }}
{{- if or .Values.warmUp.enabled .Values.reports.enabled }}
{{- with .Values.warmUp.interval }}
- --ttl=warm-up={{ . }}
{{- end }}
{{- end }}
{{- with .Values.redis }}
{{- if or .install .url .existingSecret.urlKey }}
{{- if .existingSecret.urlKey }}
- --redis-url-file=/etc/landwaiter/redis/{{ .existingSecret.urlKey }}
{{- else }}
- --redis-url={{ default (printf "redis://%s-redis:6379/0" (include "landwaiter.fullname" $)) .url }}
{{- end }}
- --redis-option=mode={{ .mode }}
- --redis-key-file=/etc/landwaiter/redis/{{ .existingSecret.keyKey }}
{{- if .caSecret.name }}
- --redis-option=ca=/etc/landwaiter/redis-ca/{{ .caSecret.key }}
{{- end }}
{{- if .clientCertificateSecret }}
- --redis-option=client-cert=/etc/landwaiter/redis-client/tls.crt
- --redis-option=client-key=/etc/landwaiter/redis-client/tls.key
{{- end }}
{{- end }}
{{- end }}
{{- range .Values.egressHosts }}
- --egress-host={{ . }}
{{- end }}
{{- range .Values.clusterCIDRs }}
- --cluster-cidr={{ . }}
{{- end }}
- --log-level={{ .Values.log.level }}
- --log-format={{ .Values.log.format }}
{{- if .Values.tracing.images }}
- --trace-images
{{- end }}
- --timeout=drain=5s
- --timeout=shutdown={{ max 1 (sub .Values.terminationGracePeriodSeconds 10) }}s
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}
