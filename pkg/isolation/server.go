package isolation

import (
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
type server struct{ client *rest.RESTClient }

// connect returns the server of a configuration.
func connect(config *rest.Config) (*server, error) {
	if config.Impersonate.UserName != "" {
		return nil, errors.New("this kubeconfig acts as another user already, who cannot act as a team: use one that logs in as yourself")
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
	return &server{client: client}, nil
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
	// Rights are checked before the API server looks for anything, so they let this pass.
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
	return answer{kind: refused, by: byRights}
}

func (s *server) mayIt(ctx context.Context, who person, r request) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := authorizationv1.SelfSubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: r.attributes()}}
	body, err := json.Marshal(review)
	if err != nil {
		return review.Status, fmt.Errorf("ask about rights: %w", err)
	}
	text, err := raw(as(s.client.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), who).
		Param("dryRun", metav1.DryRunAll).Body(body).Do(ctx))
	if err != nil {
		return review.Status, fmt.Errorf("ask about rights: %w", err)
	}
	if err := json.Unmarshal(text, &review); err != nil {
		return review.Status, fmt.Errorf("ask about rights: %w", err)
	}
	return review.Status, nil
}

// rules returns what a person may do in a namespace, as text to compare, and whether that
// is all.
func (s *server) rules(ctx context.Context, who person, namespace string) (string, bool) {
	review := authorizationv1.SelfSubjectRulesReview{TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectRulesReview"},
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	body, err := json.Marshal(review)
	if err != nil {
		return "", false
	}
	text, err := raw(as(s.client.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"), who).Param("dryRun", metav1.DryRunAll).Body(body).Do(ctx))
	if err != nil || json.Unmarshal(text, &review) != nil {
		return "", false
	}
	// The order is that in which the API server finds bindings.
	var lines []string
	for _, rule := range review.Status.ResourceRules {
		lines = append(lines, fmt.Sprint(rule))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), !review.Status.Incomplete
}

// raw returns the body of an answer. Unlike Result.Raw, its errors say what the server said.
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
		text, err := raw(get.Do(ctx))
		if err != nil {
			return nil, fmt.Errorf("list %s%s: %w", r.Resource, place(r.namespace), err)
		}
		var page struct {
			metav1.ListMeta `json:"metadata"`
			Items           []T `json:"items"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, fmt.Errorf("list %s%s: %w", r.Resource, place(r.namespace), err)
		}
		all = append(all, page.Items...)
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("list %s%s: there are more than %d", r.Resource, place(r.namespace), maxPages*pageSize)
}
