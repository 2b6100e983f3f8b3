package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// withLogin returns a Store whose login is a Secret, with a condition of generation 2.
func withLogin(status metav1.ConditionStatus, reason policy.Reason, message string, generation int64) *v1beta1.Store {
	store := &v1beta1.Store{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "registry", Generation: 2}}
	store.Spec.Registries, store.Spec.ImagePullSecrets = []string{"registry.example.com"}, []v1beta1.Reference{{Name: "pull"}}
	if status != "" {
		store.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: status, Reason: string(reason), Message: message,
			ObservedGeneration: generation}}
	}
	return store
}

func TestWhatTheServerMayNotReadIsNotUsed(t *testing.T) {
	const refused = "spec.imagePullSecrets[0]: Secret team-a/pull cannot be read: landwaiter has no permission to read it; grant it with: kubectl create " +
		"rolebinding landwaiter-reference-reader"
	const account = "system:serviceaccount:landwaiter-system:gatekeepers"
	yes := func(authorizationv1.LocalSubjectAccessReview) bool { return true }
	no := func(authorizationv1.LocalSubjectAccessReview) bool { return false }
	granted := func(r authorizationv1.LocalSubjectAccessReview) bool {
		a := r.Spec.ResourceAttributes
		return r.Spec.User == account && a.Namespace == "team-a" && a.Resource == "secrets" && a.Name == "pull" && (a.Verb == "list" || a.Verb == "watch")
	}
	notWatched := func(r authorizationv1.LocalSubjectAccessReview) bool {
		return r.Spec.ResourceAttributes.Verb != "watch"
	}
	for name, c := range map[string]struct {
		now, next *v1beta1.Store
		secret    bool // the cluster, or the change, has the Secret
		unread    bool // the person may not read the Deployment
		may       func(authorizationv1.LocalSubjectAccessReview) bool
		want      string // "", "broken" or "unknown", before and after
	}{
		"the condition says that it cannot be read": {now: withLogin("False", policy.ReasonAccessDenied, refused, 2), secret: true, may: yes,
			want: "broken broken"},
		"so it does, and the person may not ask": {now: withLogin("False", policy.ReasonAccessDenied, refused, 2), secret: true, unread: true,
			want: "broken broken"},
		"so it does, and the change replaces the Store": {now: withLogin("False", policy.ReasonAccessDenied, refused, 2),
			next: withLogin("True", "", "", 2), secret: true, want: "broken broken"},
		"the condition is about an earlier generation": {now: withLogin("False", policy.ReasonAccessDenied, refused, 1), secret: true,
			may: granted, want: " "},
		"the condition is about another Secret": {now: withLogin("False", policy.ReasonAccessDenied, "Secret team-a/pull-2 cannot be read", 2),
			secret: true, may: granted, want: " "},
		"the Store is ready, and the person may not ask":          {now: withLogin("True", "Ready", "", 2), secret: true, want: " "},
		"the Store was ready, and the person may not ask":         {now: withLogin("True", "Ready", "", 1), secret: true, want: "unknown unknown"},
		"the server may read it for a new Store":                  {next: withLogin("", "", "", 0), secret: true, may: granted, want: " "},
		"the server may not read it for a new Store":              {next: withLogin("", "", "", 0), secret: true, may: no, want: " broken"},
		"it may list it, and not watch it":                        {next: withLogin("", "", "", 0), secret: true, may: notWatched, want: " broken"},
		"what a file says of the status is not believed":          {next: withLogin("True", "Ready", "", 2), secret: true, may: no, want: " broken"},
		"the account is a guess, and it may not read it":          {next: withLogin("", "", "", 0), secret: true, unread: true, may: no, want: " unknown"},
		"the account is a guess, and it may read it":              {next: withLogin("", "", "", 0), secret: true, unread: true, may: yes, want: " "},
		"the person may not ask about a new Store":                {next: withLogin("", "", "", 0), secret: true, want: " unknown"},
		"a Secret that does not exist is missing, not unreadable": {next: withLogin("", "", "", 0), unread: true, may: no, want: " "},
	} {
		t.Run(name, func(t *testing.T) {
			f := serviceFlags{by: newPerson(), installed: types.NamespacedName{Namespace: "landwaiter-system", Name: "landwaiter"}}
			require.NoError(t, f.parseServed())
			var states [2]live.State
			for i, store := range []*v1beta1.Store{c.now, c.next} {
				if i == 1 && store == nil {
					store = c.now
				}
				if store != nil {
					states[i].Objects.Resources = []v1beta1.Object{store}
				}
				if c.secret {
					states[i].Objects.Secrets = []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "pull"}}}
				}
			}
			person := apiServer(t, c.unread, c.may)
			server, err := f.observe(t.Context(), person)
			require.NoError(t, err)
			require.NoError(t, f.asServer(t.Context(), person, server, &states[0], &states[1]))
			said := func(o resource.Objects) string {
				source := policy.ObjectRef{Kind: "Secret", Namespace: "team-a", Name: "pull"}
				switch {
				case len(o.Broken) == 1:
					require.Equal(t, source, o.Broken[0].Source)
					require.Equal(t, policy.ReasonAccessDenied, o.Broken[0].Reason)
					if !c.unread {
						require.EqualError(t, o.Broken[0].Err, "landwaiter has no permission to read it; grant it with: kubectl create rolebinding landwaiter-reference-reader "+
							"--namespace=team-a --clusterrole=landwaiter-reference-reader --serviceaccount=landwaiter-system:gatekeepers")
					}
					return "broken"
				case len(o.Unreadable) == 1:
					require.Equal(t, source, o.Unreadable[0].Source)
					require.Contains(t, o.Unreadable[0].Why, "it is unknown whether Landwaiter may read Secret team-a/pull")
					return "unknown"
				}
				return ""
			}
			require.Equal(t, c.want, said(states[0].Objects)+" "+said(states[1].Objects))
		})
	}
}
