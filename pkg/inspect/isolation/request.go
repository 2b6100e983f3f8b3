package isolation

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Verbs of requests that are tried as dry runs. All others are only asked about.
const (
	verbCreate = "create"
	verbPatch  = "patch"
	verbUpdate = "update"
	verbDelete = "delete"
)

// request is something that must be refused.
type request struct {
	does string // such as "create a Secret in namespace iris-red"
	verb string
	schema.GroupVersionResource
	subresource, namespace, name string
	// body is the object of a create or an update, or a merge patch.
	body map[string]any
	// onlyAsk asks the authorizer instead of trying: for what would hand out data or
	// tokens.
	onlyAsk bool
	// guardrail is what must refuse where permissions do not. Without it permissions must.
	guardrail string
	// also lists what else may refuse, as answer.by has it.
	also []string
}

// group is a short way to write a resource.
func group(name, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: name, Version: version, Resource: resource}
}

// core names a resource of Kubernetes' oldest group.
func core(resource string) schema.GroupVersionResource { return group("", "v1", resource) }

const (
	rbacGroup    = "rbac.authorization.k8s.io"
	fluxGroup    = "kustomize.toolkit.fluxcd.io"
	admission    = "admissionregistration.k8s.io"
	probeName    = "landwaiter-isolation"
	probeImage   = v1beta1.IsolationImage + "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	podSecurity  = "pod-security.kubernetes.io/"
	ignoreLabel  = "admission.gatekeeper.sh/ignore"
	clusterAdmin = "cluster-admin"
)

// path is the URL path of a request that is tried.
func (r request) path() string {
	parts := []string{"/api", r.Version}
	if r.Group != "" {
		parts = []string{"/apis", r.Group, r.Version}
	}
	if r.namespace != "" {
		parts = append(parts, "namespaces", r.namespace)
	}
	parts = append(parts, r.Resource)
	if r.verb != verbCreate {
		parts = append(parts, r.name)
	}
	if r.subresource != "" {
		parts = append(parts, r.subresource)
	}
	return strings.Join(parts, "/")
}

// method is the HTTP method of a request that is tried.
func (r request) method() string {
	return map[string]string{verbCreate: http.MethodPost, verbPatch: http.MethodPatch, verbUpdate: http.MethodPut, verbDelete: http.MethodDelete}[r.verb]
}

// tried reports whether a request is sent as a dry run.
func (r request) tried() bool {
	return !r.onlyAsk && slices.Contains([]string{verbCreate, verbPatch, verbUpdate, verbDelete}, r.verb)
}

// attributes are what the authorizer is asked about.
func (r request) attributes() *authorizationv1.ResourceAttributes {
	a := &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: r.subresource, Namespace: r.namespace, Name: r.name}
	if r.Group == "" && r.Resource == "namespaces" && a.Namespace == "" {
		a.Namespace = r.name // as the API server does for the namespace itself
	}
	return a
}

// object makes the body of a create.
func object(apiVersion, kind, namespace, name string, fields map[string]any) map[string]any {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	made := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for key, value := range fields {
		if key == "labels" || key == "annotations" {
			metadata[key] = value
			continue
		}
		made[key] = value
	}
	return made
}

// create asks to create an object of a namespace, or of the cluster without one.
func create(resource schema.GroupVersionResource, kind, namespace string, fields map[string]any) request {
	return request{does: "create " + withArticle(kind) + place(namespace), verb: verbCreate, GroupVersionResource: resource, namespace: namespace,
		body: object(resource.GroupVersion().String(), kind, namespace, probeName, fields)}
}

// mayDo asks about a permission.
func mayDo(verb string, resource schema.GroupVersionResource, subresource, namespace string) request {
	what := resource.Resource
	if subresource != "" {
		what += "/" + subresource
	}
	return request{does: verb + " " + what + place(namespace), verb: verb, GroupVersionResource: resource, subresource: subresource, namespace: namespace, onlyAsk: true}
}

// remove asks to delete an object.
func remove(resource schema.GroupVersionResource, namespace, name string) request {
	return request{does: fmt.Sprintf("delete %s %s%s", resource.Resource, name, place(namespace)), verb: verbDelete, GroupVersionResource: resource, namespace: namespace, name: name}
}

// change asks to merge a patch into an object.
func change(does string, resource schema.GroupVersionResource, namespace, name string, patch map[string]any) request {
	return request{does: does, verb: verbPatch, GroupVersionResource: resource, namespace: namespace, name: name, body: patch}
}

func place(namespace string) string {
	if namespace == "" {
		return " in the whole cluster"
	}
	return " in namespace " + namespace
}

func withArticle(kind string) string {
	if strings.ContainsAny(kind[:1], "AEIOU") {
		return "an " + kind
	}
	return "a " + kind
}

// guarded returns the requests as those that a guardrail refuses where permissions do not.
func guarded(guardrail string, requests ...request) []request {
	for i := range requests {
		requests[i].guardrail = guardrail
	}
	return requests
}

func labels(key string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}}
}

func annotations(key string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
}

// podBody is a pod that any Pod Security level admits.
func podBody() map[string]any {
	container := map[string]any{"name": "probe", "image": probeImage, "resources": map[string]any{"requests": map[string]any{"cpu": "1m", "memory": "1Mi"}, "limits": map[string]any{"cpu": "1m", "memory": "1Mi"}},
		"securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}}}}
	return map[string]any{"spec": map[string]any{"automountServiceAccountToken": false, "containers": []any{container},
		"securityContext": map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}}}
}
