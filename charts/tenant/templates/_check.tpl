{{/* Refuses what the CRD of Tenant refuses by rules that a schema cannot say, and
what would be rendered in vain. Takes a list: context, tenant. */}}
{{- define "tenant.check" -}}
{{- $t := index . 0 }}
{{- $tenant := index . 1 }}
{{- range $name := concat $t.all (list (default "" $tenant.namespacePrefix)) }}
{{- if or (hasPrefix "kube-" $name) (has $name (list "default" "flux-system" "gatekeeper-system" "landwaiter-system")) }}
{{- fail (printf "tenants: %s: %s is a namespace of the system; name one of the team" $t.name $name) }}
{{- end }}
{{- end }}
{{- range $system := list "flux-system" "gatekeeper-system" "landwaiter-system" }}
{{- if and $tenant.namespacePrefix (hasPrefix $tenant.namespacePrefix $system) }}
{{- fail (printf "tenants: %s: namespacePrefix %s covers namespaces of the system; choose one of the team" $t.name $tenant.namespacePrefix) }}
{{- end }}
{{- end }}
{{- range $person := concat (default list $t.access.admins) (default list $t.access.developers) (default list $t.access.viewers) }}
{{- if hasPrefix "system:" $person.name }}
{{- fail (printf "tenants: %s: %s: names that begin with system: belong to the system; name users and groups of the team" $t.name $person.name) }}
{{- end }}
{{- if ne (eq $person.kind "ServiceAccount") (hasKey $person "namespace") }}
{{- fail (printf "tenants: %s: %s %s: set namespace for a ServiceAccount, and remove it for a User or a Group" $t.name $person.kind $person.name) }}
{{- end }}
{{- end }}
{{- if and $t.alone (or $t.access.developers $t.access.viewers) }}
{{- fail (printf "tenants: %s: developers and viewers have no permissions in the home namespace %s, and there is no other namespace; list one in namespaces, or set namespacePrefix" $t.name $t.home) }}
{{- end }}
{{- if and $t.reconciler.createNamespaces (not $tenant.namespacePrefix) }}
{{- fail (printf "tenants: %s: reconciler.createNamespaces needs namespacePrefix: without it there is no namespace that the account could make" $t.name) }}
{{- end }}
{{- range $name, $_ := $t.reconciler.variables }}
{{- if not (regexMatch "^[_a-zA-Z][_a-zA-Z0-9]*$" $name) }}
{{- fail (printf "tenants: %s: reconciler.variables: %s is not the name of a variable; use letters, digits and underscores, and begin with no digit" $t.name $name) }}
{{- end }}
{{- end }}
{{- $secrets := list }}
{{- range $t.reconciler.variablesFrom }}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" .secretRef.name) }}
{{- fail (printf "tenants: %s: reconciler.variablesFrom: %q is not the name of a Secret; name one in the home namespace" $t.name .secretRef.name) }}
{{- end }}
{{- if has .secretRef.name $secrets }}
{{- fail (printf "tenants: %s: reconciler.variablesFrom: Secret %s is named twice: remove one of the entries" $t.name .secretRef.name) }}
{{- end }}
{{- $secrets = append $secrets .secretRef.name }}
{{- end }}
{{- with $t.reconciler.source }}
{{- if not (regexMatch "^(https|ssh|oci)://[^@ ]+$|^ssh://[A-Za-z0-9._-]+@[^@ ]+$" .url) }}
{{- fail (printf "tenants: %s: reconciler.source.url: begin the URL with https://, ssh:// or oci://, and put credentials into source.secretRef" $t.name) }}
{{- end }}
{{- end }}
{{- end -}}
