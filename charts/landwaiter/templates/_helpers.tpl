{{/* The name of all objects: a DNS label that begins with a letter, as Services need it, and that YAML
reads as text. A release may be called 1, my.release or true. */}}
{{- define "landwaiter.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := default (contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name)) .Values.fullnameOverride | replace "." "-" -}}
{{- if or (not (regexMatch "^[a-z]" $full)) (not (kindIs "string" (printf "name: %s" $full | fromYaml).name)) -}}
{{- $full = printf "%s-%s" $name .Release.Name | replace "." "-" -}}
{{- end -}}
{{- $full | trunc 40 | trimAll "-" -}}
{{- end -}}

{{/* A version as the value of a label: at most 63 characters, the last one a letter or a digit. */}}
{{- define "landwaiter.version" -}}
{{- regexReplaceAll "[^A-Za-z0-9]+$" (regexReplaceAll "[^-A-Za-z0-9_.]" . "_" | trunc 63) "" -}}
{{- end -}}

{{- define "landwaiter.image" -}}
{{- with .Values.image -}}
{{- $tag := default (regexReplaceAll "[^-A-Za-z0-9_.]" $.Chart.AppVersion "_" | trunc 128) .tag -}}
{{- .digest | empty | ternary (printf "%s:%s" .repository $tag) (printf "%s@%s" .repository .digest) -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods of a component: "operator", "redis" or, for the server, "". Takes a list: root, component. */}}
{{- define "landwaiter.selectorOf" -}}
{{- $root := index . 0 -}}
{{- $name := printf "%s-%s" (include "landwaiter.fullname" $root) (index . 1) -}}
{{- if not (index . 1) }}{{ $name = default $root.Chart.Name $root.Values.nameOverride }}{{ end -}}
{{- dict "app.kubernetes.io/name" $name "app.kubernetes.io/instance" $root.Release.Name | toYaml -}}
{{- end -}}

{{- define "landwaiter.selector" -}}
{{- include "landwaiter.selectorOf" (list . "") -}}
{{- end -}}

{{/* Labels of an object. */}}
{{- define "landwaiter.labels" -}}
{{- include "landwaiter.labelsWith" (list . dict) -}}
{{- end -}}

{{/* Labels of an object with more of its own. Takes a list: root, the chart's own labels, then labels of
values, of which the first ones take precedence. */}}
{{- define "landwaiter.labelsWith" -}}
{{- $root := index . 0 -}}
{{- $origin := dict
  "app.kubernetes.io/version" (include "landwaiter.version" $root.Chart.AppVersion)
  "app.kubernetes.io/managed-by" $root.Release.Service
  "helm.sh/chart" (include "landwaiter.version" (printf "%s-%s" $root.Chart.Name $root.Chart.Version)) -}}
{{- $selector := include "landwaiter.selector" $root | fromYaml -}}
{{- include "landwaiter.merged" (concat (list (index . 1) $selector $origin) (slice . 2) (list $root.Values.commonLabels)) -}}
{{- end -}}

{{/* Labels of pods: without versions, which would restart all pods with each version of the chart. Takes a list:
root, component as for selectorOf, labels of values. */}}
{{- define "landwaiter.podLabels" -}}
{{- $root := index . 0 -}}
{{- $own := include "landwaiter.selectorOf" (list $root (index . 1)) | fromYaml -}}
{{- with index . 1 }}{{ $_ := set $own "app.kubernetes.io/component" . }}{{ end -}}
{{- include "landwaiter.merged" (list $own (index . 2) $root.Values.commonLabels) -}}
{{- end -}}

{{/* One map of several, so that no key is written twice: the first ones take precedence. Unlike Sprig's merge, it
keeps empty text. */}}
{{- define "landwaiter.merged" -}}
{{- $all := dict -}}
{{- range $map := reverse . }}{{ range $key, $value := $map }}{{ $_ := set $all $key $value }}{{ end }}{{ end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* A quantity as a number. */}}
{{- define "landwaiter.amount" -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9]*\\.?[0-9]*([eE][-+]?[0-9]+)?" $text -}}
{{- $units := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18
  "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 -}}
{{- mulf (float64 $number) (get $units (trimPrefix $number $text)) -}}
{{- end -}}

{{/* Go's GOMEMLIMIT: 25/32 of a memory limit, so that the garbage collector works harder before
the kernel ends the process; empty without a limit. Takes resources. */}}
{{- define "landwaiter.memoryLimit" -}}
{{- with ((default dict .).limits | default dict).memory }}
{{- printf "%dMiB" (int64 (divf (mulf (include "landwaiter.amount" . | float64) 25) 33554432)) }}
{{- end }}
{{- end -}}

{{/* Where pods may run, the same for the server and the operator. Takes a list: root, the labels that
select the pods. */}}
{{- define "landwaiter.scheduling" -}}
{{- $root := index . 0 }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- index . 1 | nindent 8 }}
{{- with $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "landwaiter.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}{{ .Values.serviceAccount.name }}
{{- else -}}{{ include "landwaiter.fullname" . }}{{- end -}}
{{- end -}}

{{- define "landwaiter.tlsSecret" -}}
{{- default (printf "%s-tls" (include "landwaiter.fullname" .)) .Values.tls.secretName -}}
{{- end -}}

{{- define "landwaiter.url" -}}
{{- default (printf "https://%s.%s.svc:443" (include "landwaiter.fullname" .) .Release.Namespace) .Values.provider.url -}}
{{- end -}}

{{/* Plurals of the kinds of a scope, as the chart's CRDs have them, so that the
roles know every kind. Takes a list: root, "Namespaced" or "Cluster", subresource. */}}
{{- define "landwaiter.plurals" -}}
{{- $root := index . 0 }}
{{- $scope := index . 1 }}
{{- $suffix := index . 2 }}
{{- $plurals := list }}
{{- range $path, $_ := $root.Files.Glob "files/crds/*.yaml" }}
{{- $crd := $root.Files.Get $path | fromYaml }}
{{- if eq $crd.spec.scope $scope }}
{{- $plurals = append $plurals (printf "%s%s" $crd.spec.names.plural $suffix) }}
{{- end }}
{{- end }}
{{- join ", " $plurals }}
{{- end -}}

{{/* All Provider objects, as a list under the key "providers": name, path, seconds. */}}
{{- define "landwaiter.providers" -}}
{{- $full := include "landwaiter.fullname" . -}}
{{- $verify := .Values.provider.verifyTimeoutSeconds -}}
{{- $mutate := .Values.provider.mutateTimeoutSeconds -}}
providers:
{{- if .Values.provider.create }}
- {name: {{ $full }}-verdict, path: /v1/verdict, seconds: {{ $verify }}}
- {name: {{ $full }}-verify, path: /v1/verify, seconds: {{ $verify }}}
{{- if .Values.provider.audit }}
- {name: {{ $full }}-audit, path: /v1/audit/verify, seconds: {{ $verify }}}
{{- end }}
{{- if .Values.provider.ratify }}
- {name: {{ $full }}-ratify, path: /ratify/gatekeeper/v1/verify, seconds: {{ $verify }}}
{{- end }}
{{- if and .Values.mutation.enabled (not .Values.operator.mutation) }}
- {name: {{ $full }}-mutate, path: /v1/mutate, seconds: {{ $mutate }}}
{{- range .Values.mutation.namespaces }}
- {name: {{ $full }}-mutate-{{ . }}, path: /v1/namespaces/{{ . }}/mutate, seconds: {{ $mutate }}}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Assign objects of one Provider: one for each place where images stand, whatever
the kinds. Takes a list: root, provider name, name prefix, match. A pod's images are
pinned when it is made and never later: a new name would restart its containers. Gatekeeper takes names of
at most 63 characters, so longer ones end in a digest. */}}
{{- define "landwaiter.assigns" -}}
{{- $root := index . 0 }}
{{- $pods := list (dict "groups" (list "") "kinds" (list "Pod") "versions" (list "v1") "operations" (list "CREATE")) }}
{{- $debug := list (dict "groups" (list "") "kinds" (list "Pod") "versions" (list "v1") "operations" (list "UPDATE")) }}
{{- $places := list
  (dict "id" "pods-containers" "applyTo" $pods "path" "spec.containers")
  (dict "id" "pods-initcontainers" "applyTo" $pods "path" "spec.initContainers")
  (dict "id" "pods-ephemeralcontainers" "applyTo" $debug "path" "spec.ephemeralContainers") }}
{{- if $root.Values.mutation.workloads }}
{{- /* No ReplicaSets: a Deployment's controller would no longer know its own, and make more without end. A Job's
template is immutable. Other kinds are pinned at updates too: a tag that is applied again would restart the pods. */}}
{{- $templates := list
  (dict "groups" (list "apps") "kinds" (list "Deployment" "StatefulSet" "DaemonSet") "versions" (list "v1"))
  (dict "groups" (list "batch") "kinds" (list "Job") "versions" (list "v1") "operations" (list "CREATE")) }}
{{- $cronjobs := list (dict "groups" (list "batch") "kinds" (list "CronJob") "versions" (list "v1")) }}
{{- $places = concat $places (list
  (dict "id" "templates-containers" "applyTo" $templates "path" "spec.template.spec.containers")
  (dict "id" "templates-initcontainers" "applyTo" $templates "path" "spec.template.spec.initContainers")
  (dict "id" "cronjobs-containers" "applyTo" $cronjobs "path" "spec.jobTemplate.spec.template.spec.containers")
  (dict "id" "cronjobs-initcontainers" "applyTo" $cronjobs "path" "spec.jobTemplate.spec.template.spec.initContainers")) }}
{{- end }}
{{- $call := . }}
{{- range $place := $places }}
{{- $name := printf "%s-%s" (index $call 2) $place.id }}
{{- if gt (len $name) 63 }}
{{- $name = printf "%s-%s-%s" (index $call 2 | trunc (int (sub 53 (len $place.id)))) (index $call 2 | sha256sum | trunc 8) $place.id }}
{{- end }}
---
apiVersion: mutations.gatekeeper.sh/v1
kind: Assign
metadata:
  name: {{ $name }}
  labels:
    {{- include "landwaiter.labels" $root | nindent 4 }}
spec:
  applyTo:
    {{- toYaml $place.applyTo | nindent 4 }}
  match:
    scope: Namespaced
    {{- toYaml (index $call 3) | nindent 4 }}
  location: {{ printf "%s[name:*].image" $place.path | quote }}
  parameters:
    assign:
      externalData:
        provider: {{ index $call 1 }}
        dataSource: ValueAtLocation
        failurePolicy: Fail
{{- end }}
{{- end -}}
