{{/* Landwaiter's own account, as the API server names it. */}}
{{- define "landwaiter.ownAccount" -}}
{{ printf "system:serviceaccount:%s:%s" .Release.Namespace (include "landwaiter.serviceAccount" .) }}
{{- end -}}

{{/* Who counts as the platform. The check is of the whole cluster, so no RoleBinding in
a namespace satisfies it. */}}
{{- define "landwaiter.platform" -}}
authorizer.group('landwaiter.dev').resource('tenantlabels').check('manage').allowed()
{{- end -}}

{{/* Who may make namespaces: anyone who is bound to the ClusterRole namespace-maker. */}}
{{- define "landwaiter.makesNamespaces" -}}
authorizer.group('landwaiter.dev').resource('tenantlabels').check('create').allowed()
{{- end -}}

{{/* The ClusterRoles that the operator may bind, as JSON. */}}
{{- define "landwaiter.operatorRoles" -}}
{{- $full := include "landwaiter.fullname" . -}}
{{ concat (list "admin" "edit" "view" (printf "%s-reconciler" $full) (printf "%s-reference-reader" $full)) (default list .Values.operator.clusterRoles) | uniq | toJson }}
{{- end -}}

{{/* Head of a ValidatingAdmissionPolicy. Takes a list: root, name suffix, whether it is
evaluated once for every Tenant (true) or every resource of another kind, in the namespace of the request (its name). */}}
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
  paramKind: {apiVersion: landwaiter.dev/v1beta1, kind: {{ kindIs "string" (index . 2) | ternary (index . 2) "Tenant" }}}
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
  # Every {{ kindIs "string" (index . 2) | ternary (index . 2) "Tenant" }} must agree; without one there is nothing to guard.
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

{{/* Keeps the Secrets that resources of one kind name. It holds in namespaces of Tenants, so that the rest of a cluster goes
on without the kind. Takes a list: root, kind, its plural, the template of a list of names. */}}
{{- define "landwaiter.namedSecrets" -}}
{{- $root := index . 0 }}{{ $kind := index . 1 }}{{ $plural := index . 2 }}
{{- include "landwaiter.policy" (list $root (printf "secrets-of-%s" $plural) $kind) }}
  matchConstraints:
    namespaceSelector: {matchExpressions: [{key: landwaiter.dev/tenant, operator: Exists}]}
    resourceRules:
      - {apiGroups: [""], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [secrets]}
      - {apiGroups: [external-secrets.io], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [externalsecrets, pushsecrets]}
      - {apiGroups: [cert-manager.io], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [certificates, issuers]}
      - {apiGroups: [secrets-store.csi.x-k8s.io], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [secretproviderclasses]}
  variables:
    - name: kind
      expression: "request.resource.resource"
    - name: names
      expression: >-
        {{- include (index . 3) $root | nindent 8 }}
    # What the object, or a controller by its order, writes.
    - name: writes
      expression: >-
        variables.kind == 'secrets' ? [string(object.metadata.name)] :
        variables.kind == 'externalsecrets' ? [has(object.spec.target) && has(object.spec.target.name) && object.spec.target.name != '' ? string(object.spec.target.name) : string(object.metadata.name)] :
        variables.kind == 'pushsecrets' ? (has(object.spec.data) ? object.spec.data.map(d, string(d.match.remoteRef.remoteKey)) : []) :
        variables.kind == 'certificates' ? [string(object.spec.secretName)] :
        variables.kind == 'issuers' ? (has(object.spec.acme) ? [string(object.spec.acme.privateKeySecretRef.name)] : []) :
        has(object.spec.secretObjects) ? object.spec.secretObjects.map(o, string(o.secretName)) : []
    - name: hit
      expression: "variables.writes.filter(w, w in variables.names)"
    # The names that it pushes stand in the Secret.
    - name: pushesAll
      expression: "variables.kind == 'pushsecrets' && has(object.spec.dataTo) && size(object.spec.dataTo) > 0 && size(variables.names) > 0"
    - name: unchanged
      expression: >-
        request.operation == 'UPDATE' && (variables.kind == 'secrets' ?
        has(object.data) == has(oldObject.data) && (!has(object.data) || object.data == oldObject.data) : object.spec == oldObject.spec)
    # An account of another namespace, as controllers have, unless it may write the rules here, as the team's account.
    - name: foreign
      expression: >-
        request.userInfo.username.startsWith('system:serviceaccount:') && !request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':') &&
        !authorizer.group('landwaiter.dev').resource('{{ $plural }}').namespace(request.namespace).check('update').allowed()
  validations:
    - expression: "variables.unchanged || size(variables.hit) == 0 || (variables.kind == 'secrets' && !variables.foreign) || {{ include "landwaiter.platform" $root }}"
      messageExpression: >-
        variables.kind == 'secrets' ?
        'Secret ' + object.metadata.name + ' is named by {{ $kind }} ' + params.metadata.name + ', so only those who may write {{ $plural }} in namespace ' + request.namespace + ' may write it: ' +
        'if ' + request.userInfo.username + ' is to, bind it to ClusterRole {{ include "landwaiter.fullname" $root }}-rules-writer there' :
        request.kind.kind + ' ' + object.metadata.name + ' would write Secret ' + variables.hit.join(', ') + ', which {{ $kind }} ' + params.metadata.name + ' names: choose another name, or ask a cluster admin'
      reason: Forbidden
    - expression: "!variables.pushesAll || variables.unchanged || {{ include "landwaiter.platform" $root }}"
      messageExpression: >-
        'PushSecret ' + object.metadata.name + ' may write every Secret, also those that {{ $kind }} ' + params.metadata.name + ' names: list what it pushes in spec.data, and leave out spec.dataTo'
      reason: Forbidden
{{- include "landwaiter.binding" (list $root (printf "secrets-of-%s" $plural) $kind) }}
{{- end -}}

{{/* The names of the Secrets that a Store in params names, but for the pull secrets of an account: pkg/resources/resource/fields.go. */}}
{{- define "landwaiter.secretsOfStore" -}}
(has(params.spec.imagePullSecrets) ? params.spec.imagePullSecrets.map(s, string(s.name)) : []) +
(has(params.spec.identity) && has(params.spec.identity.secretRef) ? [string(params.spec.identity.secretRef.name)] : []) +
(has(params.spec.caBundle) && has(params.spec.caBundle.secretKeyRef) ? [string(params.spec.caBundle.secretKeyRef.name)] : []) +
(has(params.spec.additionalCABundles) ? params.spec.additionalCABundles.filter(b, has(b.secretKeyRef)).map(b, string(b.secretKeyRef.name)) : []) +
(has(params.spec.clientCertificate) ? [string(params.spec.clientCertificate.secretRef.name)] : []) +
(has(params.spec.proxy) && has(params.spec.proxy.secretRef) ? [string(params.spec.proxy.secretRef.name)] : []) +
(has(params.spec.proxy) && has(params.spec.proxy.caBundle) && has(params.spec.proxy.caBundle.secretKeyRef) ? [string(params.spec.proxy.caBundle.secretKeyRef.name)] : [])
{{- end -}}

{{/* The names of the Secrets that a TrustStore in params names. */}}
{{- define "landwaiter.secretsOfTrustStore" -}}
(has(params.spec.source) && has(params.spec.source.secretKeyRef) ? [string(params.spec.source.secretKeyRef.name)] : []) +
(has(params.spec.source) && has(params.spec.source.kms) && has(params.spec.source.kms.secretRef) ? [string(params.spec.source.kms.secretRef.name)] : []) +
(has(params.spec.source) && has(params.spec.source.vault) && has(params.spec.source.vault.tokenSecretKeyRef) ? [string(params.spec.source.vault.tokenSecretKeyRef.name)] : []) +
(has(params.spec.source) && has(params.spec.source.vault) && has(params.spec.source.vault.caBundle) && has(params.spec.source.vault.caBundle.secretKeyRef) ? [string(params.spec.source.vault.caBundle.secretKeyRef.name)] : []) +
(has(params.spec.source) && has(params.spec.source.tuf) && has(params.spec.source.tuf.caBundle) && has(params.spec.source.tuf.caBundle.secretKeyRef) ? [string(params.spec.source.tuf.caBundle.secretKeyRef.name)] : []) +
(has(params.spec.awsSigner) && has(params.spec.awsSigner.secretRef) ? [string(params.spec.awsSigner.secretRef.name)] : [])
{{- end -}}
