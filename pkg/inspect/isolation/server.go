package isolation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// server is the API server, reached only with dry runs.
type server struct {
	client *rest.RESTClient
	// known caches the rules of people in namespaces, which are needed often.
	known map[ruleKey]knownRules
}

// ruleKey is a person in a namespace.
type ruleKey struct{ who, namespace string }

// knownRules are a person's permissions; all means everything.
type knownRules struct {
	rules []authorizationv1.ResourceRule
	all   bool
}

// connect returns the server of a configuration.
func connect(config *rest.Config) (*server, error) {
	if config.Impersonate.UserName != "" {
		return nil,
			errors.New("this kubeconfig already impersonates another user, who cannot impersonate a team: use one that logs in as yourself")
	}
	own := rest.CopyConfig(config)
	own.QPS, own.Burst, own.Timeout = perSecond, burst, requestTimeout
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return dryRunOnly{next} })
	own.GroupVersion, own.APIPath = &schema.GroupVersion{Version: "v1"}, "/api"
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("make a client for the Kubernetes API: %w", err)
	}
	return &server{client: client, known: map[ruleKey]knownRules{}}, nil
}

// as makes a request act as a person.
func as(r *rest.Request, who person) *rest.Request {
	r = r.SetHeader("Impersonate-User", who.user)
	if len(who.groups) > 0 {
		r = r.SetHeader("Impersonate-Group", who.groups...)
	}
	return r
}

// ask tries a request as a person, or asks the authorizer about it.
func (s *server) ask(ctx context.Context, who person, r request) answer {
	if !r.tried() {
		return s.review(ctx, who, r)
	}
	try := as(s.client.Verb(r.method()).AbsPath(r.path()), who).Param("dryRun", metav1.DryRunAll)
	if r.body != nil {
		body, err := json.Marshal(r.body)
		if err != nil {
			return answer{kind: unanswered, text: err.Error()}
		}
		try = try.Body(body)
		if r.verb == verbPatch {
			try = try.SetHeader("Content-Type", string(types.MergePatchType))
		}
	}
	err := try.Do(ctx).Error()
	if !apierrors.IsNotFound(err) {
		return classify(err)
	}
	// Permissions are checked before the API server looks for an object, so they allowed this
	// request.
	if a := s.review(ctx, who, r); a.kind != accepted || r.guardrail == "" {
		return a
	}
	return classify(err)
}

// review asks the authorizer whether a person may do something.
func (s *server) review(ctx context.Context, who person, r request) answer {
	status, err := s.mayIt(ctx, who, r)
	switch {
	case err != nil:
		a := classify(err)
		if a.kind != unanswered {
			a = answer{kind: unanswered, text: "the authorizer did not answer: " + shown(err.Error())}
		}
		return a
	case status.Allowed:
		return answer{kind: accepted}
	}
	// A permission limited to a name does not answer a general question.
	if name := s.byName(ctx, who, r); name != "" {
		return answer{kind: accepted, named: name}
	}
	return answer{kind: refused, by: byRights}
}

// byName returns an object, other than the person's own, on which a person has a permission that a
// request asks for in general, "" if there is none.
func (s *server) byName(ctx context.Context, who person, r request) string {
	if r.name != "" || r.verb == "bind" { // a platform may let admins bind the roles that it names
		return ""
	}
	resource := r.Resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	covers := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	for _, rule := range s.rules(ctx, who, cmp.Or(r.namespace, probeName)).rules {
		others := slices.DeleteFunc(slices.Clone(rule.ResourceNames), func(name string) bool { return name == r.own })
		if len(others) > 0 && covers(rule.Verbs, r.verb) && covers(rule.APIGroups, r.Group) && covers(rule.Resources, resource) {
			return others[0]
		}
	}
	return ""
}

func (s *server) mayIt(ctx context.Context, who person, r request) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: r.attributes()}}
	if err := s.post(ctx, who, "selfsubjectaccessreviews", &review); err != nil {
		return review.Status, fmt.Errorf("ask about permissions: %w", err)
	}
	return review.Status, nil
}

// post asks the authorizer as a person, and writes its answer to review.
func (s *server) post(ctx context.Context, who person, resource string, review any) error {
	body, err := json.Marshal(review)
	if err != nil {
		return err
	}
	text, err := raw(as(s.client.Post().AbsPath("/apis/authorization.k8s.io/v1/"+resource), who).Param("dryRun", metav1.DryRunAll).
		Body(body).Do(ctx))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, review)
}

// rules returns a person's permissions in a namespace.
func (s *server) rules(ctx context.Context, who person, namespace string) knownRules {
	key := ruleKey{who.user + " " + strings.Join(who.groups, ","), namespace}
	if found, ok := s.known[key]; ok {
		return found
	}
	review := authorizationv1.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectRulesReview"},
		Spec:     authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if s.post(ctx, who, "selfsubjectrulesreviews", &review) != nil {
		return knownRules{} // asked again next time
	}
	s.known[key] = knownRules{review.Status.ResourceRules, !review.Status.Incomplete}
	return s.known[key]
}

// text returns rules to compare, in the order in which the API server finds bindings.
func (k knownRules) text() string {
	var lines []string
	for _, rule := range k.rules {
		lines = append(lines, fmt.Sprint(rule))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// raw returns the body of an answer. Unlike Result.Raw, its errors contain the server's
// message.
func raw(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// whyAllowed names the binding that allows a request, "" if the authorizer does not say.
func (s *server) whyAllowed(ctx context.Context, who person, r request) string {
	status, err := s.mayIt(ctx, who, r)
	if err != nil || !status.Allowed {
		return ""
	}
	return shown(status.Reason)
}

// list reads the objects of a resource as the person who runs this.
func list[T any](ctx context.Context, s *server, r request, selector string) ([]T, error) {
	var all []T
	next := ""
	for range maxPages {
		get := s.client.Get().AbsPath(r.path()).Param("limit", fmt.Sprint(pageSize))
		if selector != "" {
			get = get.Param("labelSelector", selector)
		}
		if next != "" {
			get = get.Param("continue", next)
		}
		var page struct {
			metav1.ListMeta `json:"metadata"`
			Items           []T `json:"items"`
		}
		text, err := raw(get.Do(ctx))
		if err == nil {
			err = json.Unmarshal(text, &page)
		}
		if err != nil {
			return nil, fmt.Errorf("list %s%s: %w", r.Resource, place(r.namespace), err)
		}
		all = append(all, page.Items...)
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("list %s%s: there are more than %d", r.Resource, place(r.namespace), maxPages*pageSize)
}
