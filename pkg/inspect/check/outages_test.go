package check

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestAnOutageOfARegistryIsOneFindingHoweverManyNamespacesItHits(t *testing.T) {
	outages := []Outage{
		{Namespace: "team-a", Registry: "r.example.com", Count: 3, Since: "2026-11-22T10:00:00Z", Last: "2026-11-22T11:00:00Z", Reason: "it refuses the connection"},
		{Namespace: "team-b", Registry: "r.example.com", Count: 4, Since: "2026-11-22T09:00:00Z", Last: "2026-11-22T12:00:00Z", Reason: "it does not answer"},
		{Namespace: "team-b", Registry: "typo.example.com", Count: 1, Since: "2026-11-22T09:00:00Z", Last: "2026-11-22T09:00:00Z", Reason: "it does not resolve"},
	}
	store := &v1beta1.ClusterStore{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ClusterStore"},
		ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: v1beta1.StoreSpec{Registries: []string{"r.example.com"}}}
	v := &view{Inventory: &Inventory{Now: time.Now(), Undecided: outages, Resources: []v1beta1.Object{store},
		Lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now()}}}}}
	of := func(rules ...func(*view, func(resource.Finding))) (found []resource.Finding) {
		for _, rule := range rules {
			rule(v, func(f resource.Finding) { found = append(found, f) })
		}
		return found
	}
	found := of(badFacts, lasting)
	require.Len(t, found, 2)
	require.Equal(t, RegistryUnreachable, found[0].ID)
	require.Equal(t, resource.Error, found[0].Severity)
	require.Equal(t, "images of r.example.com were undecided 7 times in 2 namespaces since 2026-11-22T09:00:00Z, last 2026-11-22T12:00:00Z: it does not answer",
		found[0].Message)
	require.Contains(t, found[0].Fix, "bring back the registry")
	require.Equal(t, resource.Note, found[1].Severity, "somebody mistyped a host")
	require.Equal(t, "images of typo.example.com were undecided once in namespace team-b since 2026-11-22T09:00:00Z, last 2026-11-22T09:00:00Z: it does "+
		"not resolve", found[1].Message)

	v.Facts = &resource.Facts{
		List: []resource.Fact{{ID: RegistryUnreachable, Bad: true, Message: "registry r.example.com does not answer Landwaiter", About: "r.example.com"}}}
	found = of(badFacts, lasting)
	require.Len(t, found, 2, "the process found the same")
	require.Contains(t, found[0].Message, "does not answer Landwaiter; images of r.example.com were undecided 7 times")
	v.Facts = nil

	outages[2].Count = 2
	require.Equal(t, resource.Warning, of(lasting)[1].Severity, "a team may name any host")
	outages[2].Count, outages[2].Remedy = 200, policy.RemedyNoSuchHost
	found = of(lasting)
	require.Equal(t, resource.Note, found[1].Severity, "a ReplicaSet tries a name again that somebody mistyped")
	require.Contains(t, found[1].Why, "no such host: is typo.example.com spelt right?")
	require.Contains(t, found[1].Fix, "check that typo.example.com is spelt right")
	v.Undecided = append(v.Undecided,
		Outage{Namespace: "team-c", Registry: "typo.example.com", Count: 1, Since: "2026-11-22T08:00:00Z", Last: "2026-11-22T08:00:00Z",
			Answered: "2026-11-22T08:30:00Z"})
	require.Equal(t, resource.Warning, of(lasting)[1].Severity, "it answered another namespace")
	v.Undecided = outages
	outages[2].Remedy = ""
	outages[2].Count = 1
	v.Resources = append(v.Resources, &v1beta1.Store{Spec: v1beta1.StoreSpec{Registries: []string{"typo.example.com"}}})
	require.Equal(t, resource.Warning, of(lasting)[1].Severity, "a Store lists it")

	v.Resources[len(v.Resources)-1].(*v1beta1.Store).Spec.Registries[0] = "*.example.com"
	require.Equal(t, resource.Warning, of(lasting)[1].Severity, "a pattern of a Store matches it")

	outages[1].Reason, outages[1].Remedy = "r.example.com speaks plain HTTP, without TLS", policy.RemedyServeTLS
	require.Contains(t, of(lasting)[0].Fix, "serve r.example.com with TLS", "it is no outage")
	v.Facts = &resource.Facts{List: []resource.Fact{{ID: RegistryUnreachable, Bad: true, About: "r.example.com"}}}
	require.Contains(t, of(badFacts)[0].Fix, "serve r.example.com with TLS")
	v.Facts = nil

	outages[0].Answered = "2026-11-22T11:30:00Z"
	found = of(lasting)
	require.Equal(t, resource.Error, found[0].Severity, "it failed in another namespace since then")
	require.Contains(t, found[0].Message, "undecided 4 times in namespace team-b")
	outages[1].Answered = "2026-11-22T12:01:00Z"
	found = of(lasting)
	require.Equal(t, resource.Note, found[0].Severity)
	require.Equal(t, "images of r.example.com were undecided 7 times in 2 namespaces since 2026-11-22T09:00:00Z, last 2026-11-22T12:00:00Z: r.example.com "+
		"speaks plain HTTP, without TLS; it answers again since 2026-11-22T12:01:00Z, says the report of another namespace", found[0].Message)
	require.Empty(t, found[0].Fix)
	v.Undecided = nil
	require.Len(t, of(lasting), 0, "it is over")
}

func TestOutagesThatCannotBeReadAreNotChecked(t *testing.T) {
	read := func(missing string, err error) *reader {
		r := &reader{ctx: t.Context(),
			into: &Inventory{Unread: map[Source]Unread{}, Options: Options{Outages: func(context.Context) ([]Outage, string, error) { return nil, missing, err }}}}
		r.outages()
		return r
	}
	require.Equal(t, "you cannot list reports.openreports.io", read("list reports.openreports.io", nil).into.Unread[SourceOutages].Why)
	require.Error(t, read("", errors.New("gone")).failed)
	require.Empty(t, read("", nil).into.Unread)
}
