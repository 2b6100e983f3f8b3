package isolation

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
)

// Verbs of requests that are tried as dry runs. For all others, only the authorizer is asked.
const (
	verbCreate = "create"
	verbPatch  = "patch"
	verbUpdate = "update"
	verbDelete = "delete"
)

// request is a request that must be refused.
type request struct {
	does string // such as "create a Secret in namespace iris-red"
	verb string
	schema.GroupVersionResource
	subresource, namespace, name string
	// body is the object of a create or an update, or a merge patch.
	body map[string]any
	// onlyAsk asks the authorizer instead of trying: for requests that would return data or
	// tokens.
	onlyAsk bool
	// own names an object on which the person may have the permission.
	own string
	// guardrail is the guardrail that must refuse if permissions do not. Without it permissions
	// must.
	guardrail string
	// also lists other accepted causes of a refusal, in the form of answer.by.
	also []string
}

// group is a short way to write a resource.
func group(name, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: name, Version: version, Resource: resource}
}

// core names a resource of Kubernetes' core group.
func core(resource string) schema.GroupVersionResource { return group("", "v1", resource) }

const (
	rbacGroup    = "rbac.authorization.k8s.io"
	fluxGroup    = "kustomize.toolkit.fluxcd.io"
	admission    = "admissionregistration.k8s.io"
	probeName    = "landwaiter-isolation"
	probeImage   = v1beta1.IsolationImage + "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	podSecurity  = "pod-security.kubernetes.io/"
	clusterAdmin = "cluster-admin"
)

// path is the URL path of a tried request.
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

// method is the HTTP method of a tried request.
func (r request) method() string {
	return map[string]string{verbCreate: http.MethodPost, verbPatch: http.MethodPatch, verbUpdate: http.MethodPut,
		verbDelete: http.MethodDelete}[r.verb]
}

// tried reports whether a request is sent as a dry run.
func (r request) tried() bool {
	return !r.onlyAsk && slices.Contains([]string{verbCreate, verbPatch, verbUpdate, verbDelete}, r.verb)
}

// attributes are the attributes for the authorizer.
func (r request) attributes() *authorizationv1.ResourceAttributes {
	a := &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.Group, Version: r.Version, Resource: r.Resource,
		Subresource: r.subresource, Namespace: r.namespace, Name: r.name}
	if r.Group == "" && r.Resource == "namespaces" && a.Namespace == "" {
		a.Namespace = r.name // as the API server does for the namespace itself
	}
	return a
}

// object builds the body of a create.
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

// create requests to create an object of a namespace, or of the cluster.
func create(resource schema.GroupVersionResource, kind, namespace string, fields map[string]any) request {
	return request{does: "create " + withArticle(kind) + place(namespace), verb: verbCreate, GroupVersionResource: resource,
		namespace: namespace,
		body:      object(resource.GroupVersion().String(), kind, namespace, probeName, fields)}
}

// mayDo asks the authorizer about a permission.
func mayDo(verb string, resource schema.GroupVersionResource, subresource, namespace string) request {
	what := resource.Resource
	if subresource != "" {
		what += "/" + subresource
	}
	return request{does: verb + " " + what + place(namespace), verb: verb, GroupVersionResource: resource, subresource: subresource,
		namespace: namespace, onlyAsk: true}
}

// remove requests to delete an object.
func remove(resource schema.GroupVersionResource, namespace, name string) request {
	return request{does: fmt.Sprintf("delete %s %s%s", resource.Resource, name, place(namespace)), verb: verbDelete,
		GroupVersionResource: resource, namespace: namespace, name: name}
}

// change requests to merge a patch into an object.
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

// guarded returns the requests with the guardrail that must refuse them if permissions do
// not.
func guarded(guardrail string, requests ...request) []request {
	for i := range requests {
		requests[i].guardrail = guardrail
	}
	return requests
}

// metadata is a patch of one of the labels or annotations.
func metadata(of, key string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{of: map[string]any{key: value}}}
}

// podBody is a pod that any Pod Security level admits.
func podBody() map[string]any {
	container := map[string]any{"name": "probe", "image": probeImage,
		"resources": map[string]any{"requests": map[string]any{"cpu": "1m", "memory": "1Mi"},
			"limits": map[string]any{"cpu": "1m", "memory": "1Mi"}},
		"securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}}}}
	return map[string]any{"spec": map[string]any{"automountServiceAccountToken": false, "containers": []any{container},
		"securityContext": map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}}}
}

// answerKind classifies an answer of the API server.
type answerKind int

const (
	// unanswered proves nothing: no permission to ask, no such kind, no answer.
	unanswered answerKind = iota
	// accepted means that the request would have been executed.
	accepted
	// refused means that permissions or a guardrail refused it.
	refused
	// refusedOtherwise means that permissions allowed it, and it was refused for another reason.
	refusedOtherwise
)

// Causes of refusals other than guardrails and webhooks.
const (
	byRights    = "RBAC"
	byQuota     = "a quota"
	bySecurity  = "Pod Security"
	bySchema    = "the schema"
	byGuardrail = "guardrail "
	byConflict  = "another object of the name"
)

// answer is the API server's answer to a request.
type answer struct {
	kind answerKind
	by   string // what refused
	text string // the message
	fix  string // the fix for a missing answer
	// named is the one object to which a permission is limited.
	named string
}

// refusedRightly reports whether the request was refused by what must refuse it.
func (a answer) refusedRightly(r request) bool {
	return a.kind == refused || a.kind == refusedOtherwise && slices.Contains(r.also, a.by)
}

// Texts of Kubernetes. The API server has no other way to say who refused.
var (
	policyText = regexp.MustCompile(`^[a-z0-9./-]+(?: "[^"]*")? is forbidden: ValidatingAdmissionPolicy '([^']+)' with binding '[^']*' ` +
		`denied request`)
	webhookText = regexp.MustCompile(`^(?:[^:]* is forbidden: )?admission webhook "([^"]+)" denied the request`)
	rightsText  = regexp.MustCompile(`^[^:]* is forbidden: User ".*" cannot [a-z]+ resource`)
	grantText   = regexp.MustCompile(`^[^:]* is forbidden: user ".*" \(groups=.*\) is attempting to grant RBAC permissions not currently held`)
)

// classify reads the answer to a dry run. An unknown answer proves nothing.
func classify(err error) answer {
	if err == nil {
		return answer{kind: accepted}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return answer{kind: unanswered, text: shown(err.Error()), fix: "try again"}
	}
	message := status.Status().Message
	text := shown(message)
	switch {
	case strings.Contains(message, " cannot impersonate"):
		return answer{kind: unanswered, text: text, fix: "bind a role with the verb impersonate for users, groups and serviceaccounts to " +
			"yourself, or ask a cluster admin to run this"}
	case apierrors.IsForbidden(err):
		return forbidden(message, text)
	case apierrors.IsAlreadyExists(err):
		return answer{kind: refusedOtherwise, by: byConflict, text: text}
	case apierrors.IsInvalid(err):
		return answer{kind: refusedOtherwise, by: bySchema, text: text}
	case apierrors.IsNotFound(err):
		return answer{kind: unanswered, text: text, fix: "the object or its kind no longer exists: try again"}
	case apierrors.IsBadRequest(err):
		if match := webhookText.FindStringSubmatch(message); match != nil {
			return answer{kind: refusedOtherwise, by: "webhook " + match[1], text: text}
		}
		return answer{kind: unanswered, text: text, fix: "a webhook does not support dry runs, or the Kubernetes version differs: " +
			"see the message"}
	case apierrors.IsConflict(err):
		return answer{kind: unanswered, text: text, fix: "try again"}
	}
	return answer{kind: unanswered, text: text, fix: "try again when the API server and its webhooks answer"}
}

// forbidden says who answered 403.
func forbidden(message, text string) answer {
	switch {
	case policyText.MatchString(message):
		return answer{kind: refused, by: byGuardrail + policyText.FindStringSubmatch(message)[1], text: text}
	case webhookText.MatchString(message):
		return answer{kind: refusedOtherwise, by: "webhook " + webhookText.FindStringSubmatch(message)[1], text: text}
	case strings.Contains(message, "exceeded quota:"), strings.Contains(message, "failed quota:"):
		return answer{kind: refusedOtherwise, by: byQuota, text: text}
	case strings.Contains(message, "violates PodSecurity"):
		return answer{kind: refusedOtherwise, by: bySecurity, text: text}
	case rightsText.MatchString(message), grantText.MatchString(message):
		return answer{kind: refused, by: byRights, text: text}
	}
	// Another admission plugin: permissions allowed the request.
	return answer{kind: refusedOtherwise, by: "admission", text: text}
}

// notReadable describes what the person who runs this may not read.
func notReadable(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonForbidden {
		return "missing permission: " + shown(status.Status().Message)
	}
	return shown(err.Error())
}

// shown makes strangers' text fit for one line of a terminal.
func shown(text string) string { return check.Shown(text) }

// readable are the resources that a run may read. Secrets are not among them.
func readable() []string {
	return []string{"tenants", "namespaces", "rolebindings", "networkpolicies", "resourcequotas", "serviceaccounts", "configmaps",
		"kustomizations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "clusterroles", "stores", "truststores", "externalsecrets",
		"pushsecrets", "certificates", "issuers", "secretproviderclasses"}
}

// dryRunOnly refuses, before it leaves the machine, every request that could change something
// or read data that a run does not need.
type dryRunOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d dryRunOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := harmless(r); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // nothing was read of it
		}
		return nil, fmt.Errorf("refused to send %s %s: %w", r.Method, r.URL.Path, err)
	}
	return d.next.RoundTrip(r)
}

// harmless returns an error unless a request is a dry run or reads a readable resource.
func harmless(r *http.Request) error {
	query := r.URL.Query()
	if r.Method == http.MethodGet {
		if query.Has("watch") || !slices.Contains(readable(), listed(r.URL.Path)) {
			return fmt.Errorf("it is no list of %s", strings.Join(readable(), ", "))
		}
		return nil
	}
	if !slices.Equal(query["dryRun"], []string{metav1.DryRunAll}) {
		return fmt.Errorf("it is no dry run")
	}
	// The options in the body of a deletion override those of the URL.
	if r.Method == http.MethodDelete && r.Body != nil && r.Body != http.NoBody {
		return fmt.Errorf("it is a deletion with options in its body")
	}
	return nil
}

// listed returns the resource that a URL lists, "" for any other request: for one object, a
// subresource or a proxy.
func listed(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	version := map[string]int{"api": 2, "apis": 3}[parts[0]] // where the version ends
	if version == 0 || len(parts) <= version {
		return ""
	}
	parts = parts[version:]
	if len(parts) == 3 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) != 1 {
		return ""
	}
	return parts[0]
}
