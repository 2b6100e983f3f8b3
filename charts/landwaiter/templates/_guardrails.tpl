{{/* Whether the leader shows the rules that apply in namespaces of Tenants, as ConfigMaps
that only the guardrails protect from teams. Empty for no. */}}
{{- define "landwaiter.showsRules" -}}
{{- if and (or .Values.guardrails.enabled .Values.guardrails.external) .Values.effectiveRules.show }}true{{ end -}}
{{- end -}}

{{/* Landwaiter's own account, as the API server names it. */}}
{{- define "landwaiter.ownAccount" -}}
{{ printf "system:serviceaccount:%s:%s" .Release.Namespace (include "landwaiter.serviceAccount" .) }}
{{- end -}}

{{/* Who counts as the platform. The check is of the whole cluster, so no RoleBinding in
a namespace satisfies it. */}}
{{- define "landwaiter.platform" -}}
authorizer.group('landwaiter.dev').resource('tenantlabels').check('manage').allowed()
{{- end -}}

{{/* Who may make namespaces: whoever is bound to the ClusterRole namespace-maker. */}}
{{- define "landwaiter.makesNamespaces" -}}
authorizer.group('landwaiter.dev').resource('tenantlabels').check('create').allowed()
{{- end -}}

{{/* Head of a ValidatingAdmissionPolicy. Takes a list: root, name suffix, whether it is
evaluated once for every Tenant. */}}
{{- define "landwaiter.policy" -}}
{{- $root := index . 0 }}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ include "landwaiter.fullname" $root }}-{{ index . 1 }}
  labels:
    {{- include "landwaiter.labels" $root | nindent 4 }}
spec:
  failurePolicy: Fail
  {{- if index . 2 }}
  paramKind: {apiVersion: landwaiter.dev/v1beta1, kind: Tenant}
  {{- end }}
{{- end -}}

{{/* Its binding, with the same arguments. */}}
{{- define "landwaiter.binding" -}}
{{- $root := index . 0 }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ include "landwaiter.fullname" $root }}-{{ index . 1 }}
  labels:
    {{- include "landwaiter.labels" $root | nindent 4 }}
spec:
  policyName: {{ include "landwaiter.fullname" $root }}-{{ index . 1 }}
  validationActions: [Deny]
  {{- if index . 2 }}
  # Every Tenant must agree; without Tenants there is nothing to guard.
  paramRef: {selector: {}, parameterNotFoundAction: Allow}
  {{- end }}
---
{{- end -}}

{{/* The namespaces that no Tenant has, besides those that begin with kube-. */}}
{{- define "landwaiter.systemNamespaces" -}}
{{- $names := list "default" "flux-system" "gatekeeper-system" .Release.Namespace .Values.clusterResourceNamespace | compact | uniq -}}
[{{ range $i, $name := $names }}{{ if $i }}, {{ end }}'{{ $name }}'{{ end }}]
{{- end -}}

{{/* Variables about a Namespace that a request changes and the Tenant in params. */}}
{{- define "landwaiter.claim" -}}
- name: name
  expression: "object != null ? object.metadata.name : oldObject.metadata.name"
- name: account
  expression: >-
    'system:serviceaccount:' + params.spec.homeNamespace + ':' +
    (has(params.spec.reconciler) && has(params.spec.reconciler.serviceAccount) ? params.spec.reconciler.serviceAccount : params.metadata.name)
- name: byAccount
  expression: "has(params.spec.reconciler) && request.userInfo.username == variables.account"
- name: prefixed
  expression: "has(params.spec.namespacePrefix) && variables.name.startsWith(params.spec.namespacePrefix)"
- name: claimed
  expression: >-
    variables.prefixed || variables.name == params.spec.homeNamespace ||
    (has(params.spec.namespaces) && variables.name in params.spec.namespaces)
# What the account may make and delete itself. A home namespace in the range of the prefix stays the platform's,
# and so does a namespace of the system, whatever it was before.
- name: selfService
  expression: >-
    variables.byAccount && variables.prefixed && variables.name != params.spec.homeNamespace && !(variables.name in {{ include "landwaiter.systemNamespaces" . }}) &&
    has(params.spec.reconciler.createNamespaces) && params.spec.reconciler.createNamespaces
- name: platform
  expression: {{ include "landwaiter.platform" . | quote }}
{{- end -}}

{{/* Whether a Tenant in params has the namespace that an expression names. */}}
{{- define "landwaiter.operatorGuardrail.has" -}}
({{ . }} == variables.home || {{ . }} in variables.listed || (variables.prefix != '' && {{ . }}.startsWith(variables.prefix)))
{{- end -}}

{{/* Whether a name is another one, or, if that is too long, begins as it does and ends with a hash:
pkg/tenancy/onboard shortens names so. Takes a list: name, the other one, and how long it may be. */}}
{{- define "landwaiter.operatorGuardrail.shortened" -}}
{{- $name := index . 0 }}{{ $full := index . 1 }}{{ $most := int (index . 2) }}{{ $cut := sub $most 11 -}}
({{ $full }}.size() <= {{ $most }} ? {{ $name }} == {{ $full }} : {{ $name }}.size() > 11 && {{ $name }}.size() <= {{ $most }} &&
{{ $name }}.substring({{ $name }}.size() - 11).matches('^-[0-9a-f]{10}$') && {{ $full }}.startsWith({{ $name }}.substring(0, {{ $name }}.size() - 11)) &&
{{ $full }}.substring({{ $name }}.size() - 11, {{ $cut }}).matches('^[-.]*$'))
{{- end -}}
