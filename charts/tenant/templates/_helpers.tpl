{{/* The functions take the context that tenant.context makes of a Tenant in values. */}}

{{/* A Tenant with the defaults of its CRD, as YAML. Takes a list: root, tenant. */}}
{{- define "tenant.context" -}}
{{- $root := index . 0 }}
{{- $tenant := index . 1 }}
{{- $home := default $tenant.name $tenant.homeNamespace }}
{{- $others := without (default list $tenant.namespaces) $home | uniq | sortAlpha }}
{{- $reconciler := default dict $tenant.reconciler }}
{{- $isolation := default dict $tenant.isolation }}
{{- toYaml (dict
  "name" $tenant.name
  "home" $home
  "all" (prepend $others $home)
  "alone" (and (empty $others) (empty $tenant.namespacePrefix))
  "access" (default dict $tenant.access)
  "isolation" $isolation
  "level" (default "Restricted" $isolation.podSecurity | lower)
  "denied" (ne (default "Deny" $isolation.network) "Open")
  "reconciler" $reconciler
  "reconciles" (hasKey $tenant "reconciler")
  "account" (default $tenant.name $reconciler.serviceAccount)
  "landwaiter" $root.Values.landwaiter
) }}
{{- end -}}

{{/* Labels of an object that the team must not change. Takes the Tenant's name. */}}
{{- define "tenant.owned" -}}
landwaiter.dev/owner: platform
landwaiter.dev/tenant: {{ . | quote }}
{{- end -}}

{{/* A RoleBinding. Takes a list: context, namespace, name, ClusterRole, subjects. */}}
{{- define "tenant.binding" -}}
{{- if index . 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ (index . 2) | quote }}
  namespace: {{ (index . 1) | quote }}
  labels:
    {{- include "tenant.owned" (index . 0).name | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ (index . 3) | quote }}}
{{ include "tenant.subjects" (index . 4) }}
{{- end }}
{{- end -}}

{{/* The subjects of a binding. */}}
{{- define "tenant.subjects" -}}
subjects:
  {{- range . }}
  {{- if eq .kind "ServiceAccount" }}
  - {{ dict "kind" .kind "name" .name "namespace" .namespace | toJson }}
  {{- else }}
  - {{ dict "kind" .kind "name" .name "apiGroup" "rbac.authorization.k8s.io" | toJson }}
  {{- end }}
  {{- end }}
{{- end -}}

{{/* A NetworkPolicy. Takes a list: context, namespace, name, spec. */}}
{{- define "tenant.networkPolicy" -}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ (index . 2) | quote }}
  namespace: {{ (index . 1) | quote }}
  labels:
    {{- include "tenant.owned" (index . 0).name | nindent 4 }}
spec:
  podSelector: {}
  {{- toYaml (index . 3) | nindent 2 }}
{{- end -}}

{{/* A ConfigMap. Takes a list: context, namespace, name, data. */}}
{{- define "tenant.configMap" -}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ (index . 2) | quote }}
  namespace: {{ (index . 1) | quote }}
  labels:
    {{- include "tenant.owned" (index . 0).name | nindent 4 }}
data:
  {{- toYaml (index . 3) | nindent 2 }}
{{- end -}}
