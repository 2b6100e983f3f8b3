package isolation

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func failed(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func forbids(message string) error {
	return failed(http.StatusForbidden, metav1.StatusReasonForbidden, message)
}

func TestOnlyRightsAndGuardrailsCountAsARefusal(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		kind answerKind
		by   string
	}{
		"nothing refused": {nil, accepted, ""},
		"rights":          {forbids(`secrets is forbidden: User "ada" cannot create resource "secrets" in API group "" in the namespace "b"`), refused, byRights},
		"permissions, for a user with quotes in the name": {forbids(`secrets is forbidden: User "a" "b" cannot list resource "secrets" in API group ""`),
			refused, byRights},
		"escalation": {
			forbids(`rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "ada" (groups=["a"]) is attempting to grant RBAC permissions not currently held: {}`),
			refused, byRights},
		"a guardrail": {
			forbids(`namespaces "a" is forbidden: ValidatingAdmissionPolicy 'landwaiter-tenant-labels' with binding 'landwaiter-tenant-labels' denied request: no`),
			refused, "guardrail landwaiter-tenant-labels"},
		"a webhook": {forbids(`admission webhook "validation.gatekeeper.sh" denied the request: [x] no`), refusedOtherwise,
			"webhook validation.gatekeeper.sh"},
		"a webhook that says it": {
			forbids(`admission webhook "evil" denied the request: x is forbidden: ValidatingAdmissionPolicy 'landwaiter-x' with binding 'y' denied request`),
			refusedOtherwise, "webhook evil"},
		"a webhook that speaks of permissions": {forbids(`admission webhook "evil" denied the request: is forbidden: User "a" cannot create resource "b"`),
			refusedOtherwise, "webhook evil"},
		"a quota": {forbids(`pods "x" is forbidden: exceeded quota: tenant, requested: pods=1, used: pods=9, limited: pods=9`),
			refusedOtherwise, byQuota},
		"pod security": {forbids(`pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged`),
			refusedOtherwise, bySecurity},
		"another plugin": {forbids(`pods "x" is forbidden: unable to create new content in namespace a because it is being terminated`),
			refusedOtherwise, "admission"},
		"the schema":           {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", nil), refusedOtherwise, bySchema},
		"a name that is taken": {apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, "x"), refusedOtherwise, byConflict},
		"no permission to act " +
			"as somebody": {forbids(`users "ada" is forbidden: User "eve" cannot impersonate resource "users" in API group "" at the cluster scope`), unanswered, ""},
		"a webhook that is away":            {apierrors.NewInternalError(errors.New(`failed calling webhook "validation.gatekeeper.sh"`)), unanswered, ""},
		"too many requests":                 {apierrors.NewTooManyRequests("later", 1), unanswered, ""},
		"credentials that are not accepted": {apierrors.NewUnauthorized("no"), unanswered, ""},
		"a connection that fails":           {errors.New("connection refused"), unanswered, ""},
		"a version that lacks something":    {apierrors.NewBadRequest("unknown"), unanswered, ""},
		"a change that met another":         {apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "x", errors.New("changed")), unanswered, ""},
		"an object that went away":          {apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "x"), unanswered, ""},
		"a webhook with an answer of its own": {failed(http.StatusBadRequest, metav1.StatusReasonBadRequest, `admission webhook "x" denied the request: no`),
			refusedOtherwise, "webhook x"},
	} {
		t.Run(name, func(t *testing.T) {
			a := classify(c.err)
			require.Equal(t, c.kind, a.kind, a.text)
			require.Equal(t, c.by, a.by)
			require.Equal(t, c.kind == refused, a.refusedRightly(request{}))
			if c.kind == unanswered {
				require.NotEmpty(t, a.fix)
			}
		})
	}
}

func TestARefusalThatACaseListsCounts(t *testing.T) {
	a := answer{kind: refusedOtherwise, by: byQuota}
	require.False(t, a.refusedRightly(request{}))
	require.True(t, a.refusedRightly(request{also: []string{byQuota}}))
	require.False(t, answer{kind: accepted}.refusedRightly(request{also: []string{""}}))
}

func TestTextOfStrangersIsOneShortLine(t *testing.T) {
	require.Equal(t, "a b c", shown("a\nb\x1bc"))
	require.LessOrEqual(t, len(shown(strings.Repeat("ä", 4000))), 400+len("…"))
}
