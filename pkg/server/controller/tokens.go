package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/pkg/remote/external"
)

var _ external.Tokens = (*Tokens)(nil)

// Tokens gets tokens of ServiceAccounts from the API server (TokenRequest), each by the name
// of its account, so that a Role can be limited to it. It does not store tokens.
type Tokens struct {
	clients kubernetes.Interface
	nobody  kubernetes.Interface // has no credentials of its own

	foreign *cache.LRUExpireCache // audiences that the API server refused

	subject atomic.Pointer[string] // of a command that grants permissions; nil until it is known
}

// NewTokens returns Tokens of the API server of config.
func NewTokens(config *rest.Config) (*Tokens, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = clientQPS, clientBurst
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("get tokens: %w", err)
	}
	nobody, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("get tokens: %w", err)
	}
	return &Tokens{clients: clients, nobody: nobody, foreign: cache.NewLRUExpireCache(maxForeign)}, nil
}

// Token implements [external.Tokens]. It refuses a token that the API server itself would
// accept, regardless of who configured it.
func (t *Tokens) Token(ctx context.Context, namespace, name, audience string) (string, error) {
	account := "ServiceAccount " + namespace + "/" + name
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience},
		ExpirationSeconds: new(int64(tokenSeconds))}}
	made, err := t.clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("%s does not exist", account)
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("%s: %w%s; %s", account, external.ErrNoRight, deniedBy(err), t.grant(ctx, namespace, name))
	case err != nil:
		return "", fmt.Errorf("the Kubernetes API gave no token of %s (%s)", account, reasonOf(err))
	}
	if err := t.isForeign(ctx, made.Status.Token, audience); err != nil {
		return "", err
	}
	return made.Status.Token, nil
}

// deniedBy returns the message of a policy that denied a request, empty if a permission was
// missing.
func deniedBy(err error) string {
	if _, said, ok := strings.Cut(err.Error(), " denied request: "); ok {
		return " (" + said[:min(len(said), maxDenial)] + ")"
	}
	return ""
}

// reasonOf returns a word for why a request failed.
func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return "it cannot be reached"
}

// isForeign returns an error unless the API server refuses tokens with an audience. It asks
// once in a while for each.
func (t *Tokens) isForeign(ctx context.Context, token, audience string) error {
	if _, known := t.foreign.Get(audience); known {
		return nil
	}
	err := t.nobody.AuthenticationV1().RESTClient().Post().Resource("selfsubjectreviews").SetHeader("Authorization", "Bearer "+token).
		Body(&authenticationv1.SelfSubjectReview{}).Do(ctx).Error()
	switch {
	case err == nil, apierrors.IsForbidden(err):
		return fmt.Errorf("the Kubernetes API itself accepts tokens for %s, so none leaves the cluster: a cluster admin has to take it off "+
			"--api-audiences", audience)
	case !apierrors.IsUnauthorized(err):
		return fmt.Errorf("the Kubernetes API did not say whether it accepts tokens for %s (%s)", audience, reasonOf(err))
	}
	t.foreign.Add(audience, nil, foreignFor)
	return nil
}

// grant returns the command that gives permission to get tokens of one account.
func (t *Tokens) grant(ctx context.Context, namespace, name string) string {
	subject := t.subject.Load()
	if subject == nil {
		found, err := ownSubject(ctx, t.clients)
		if subject = &found; err == nil {
			t.subject.Store(subject)
		}
	}
	role := "landwaiter-token-" + name
	return fmt.Sprintf("grant it with: kubectl create role %s --namespace=%s --verb=create --resource=serviceaccounts/token "+
		"--resource-name=%s && kubectl create rolebinding %s --namespace=%s --role=%s %s",
		role, namespace, name, role, namespace, role, *subject)
}

// ownSubject returns the flag of kubectl create rolebinding for this process, and a
// placeholder with an error.
func ownSubject(ctx context.Context, clients kubernetes.Interface) (string, error) {
	review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return unknownSubject, fmt.Errorf("ask the API server: %w", err)
	case review.Status.UserInfo.Username == "":
		return unknownSubject, errors.New("the API server did not say who this process is")
	}
	return subjectFlag(review.Status.UserInfo.Username), nil
}

// unknownSubject is the placeholder for the unknown identity of this process.
const unknownSubject = "--serviceaccount=NAMESPACE:NAME"
