{{/* What makes Flux apply a team's repository as the team's account. Takes a list:
context, source. */}}
{{- define "tenant.sync" -}}
{{- $t := index . 0 }}
{{- $source := index . 1 }}
{{- $artifact := hasPrefix "oci://" $source.url }}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: {{ ternary "OCIRepository" "GitRepository" $artifact }}
metadata:
  name: {{ $t.name | quote }}
  namespace: {{ $t.home | quote }}
  labels:
    {{- include "tenant.owned" $t.name | nindent 4 }}
spec:
  interval: {{ default "1m" $source.interval | quote }}
  timeout: 60s
  url: {{ $source.url | quote }}
  {{- if $artifact }}
  provider: generic
  ref: {tag: {{ default "latest" $source.branch | quote }}}
  {{- else }}
  ref: {branch: {{ default "main" $source.branch | quote }}}
  {{- end }}
  {{- with $source.exclude }}
  ignore: {{ . | quote }}
  {{- end }}
  {{- with $source.secretRef }}
  secretRef: {{ toJson . }}
  {{- end }}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: {{ $t.name | quote }}
  namespace: {{ $t.home | quote }}
  labels:
    {{- include "tenant.owned" $t.name | nindent 4 }}
spec:
  force: false
  interval: 10m
  path: {{ default "./" $t.reconciler.path | quote }}
  prune: true
  retryInterval: 1m
  serviceAccountName: {{ $t.account | quote }}
  sourceRef: {kind: {{ ternary "OCIRepository" "GitRepository" $artifact }}, name: {{ $t.name | quote }}}
  {{- if $t.alone }}
  targetNamespace: {{ $t.home | quote }}
  {{- end }}
  {{- if or $t.reconciler.variables $t.reconciler.variablesFrom }}
  postBuild:
    substituteFrom:
      {{- range $t.reconciler.variablesFrom }}
      - {kind: Secret, name: {{ .secretRef.name | quote }}, optional: {{ default false .optional }}}
      {{- end }}
      {{- if $t.reconciler.variables }}
      - {kind: ConfigMap, name: tenant-vars, optional: false}
      {{- end }}
  {{- end }}
  {{- if $t.reconciler.createNamespaces }}
  patches:
    - target: {kind: Namespace, version: v1}
      patch: |
        apiVersion: v1
        kind: Namespace
        metadata:
          name: any
          labels:
            landwaiter.dev/tenant: {{ $t.name | quote }}
            toolkit.fluxcd.io/tenant: {{ $t.name | quote }}
  {{- end }}
{{- end -}}
