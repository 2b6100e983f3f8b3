package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/doctor"
	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func TestOnlyRegistriesOfClusterStoresAreAskedByName(t *testing.T) {
	stores := make([]v1alpha1.ClusterStore, 2)
	stores[0].Spec.Registries = []string{"b.example.com", "*.example.com", "a.example.com"}
	stores[1].Spec.Registries = []string{"b.example.com"}
	require.Equal(t, []string{"a.example.com", "b.example.com"}, registriesOf(stores))
	for i := range maxProbedRegistries {
		stores[1].Spec.Registries = append(stores[1].Spec.Registries, string(rune('a'+i%26))+string(rune('a'+i/26))+".example.net")
	}
	require.Len(t, registriesOf(stores), maxProbedRegistries)
}

func TestARegistryThatSaysNoIsWithinReach(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var answer error
	asked := 0
	p := &registryProbe{stores: func(context.Context) ([]string, error) { return []string{"a.example.com"}, nil }, now: func() time.Time { return at },
		resolve: func(_ context.Context, namespace verify.Namespace, _ image.Reference) (image.Reference, error) {
			require.Equal(t, verify.Cluster, namespace)
			asked++
			return image.Reference{}, answer
		}}

	answer = tenant.ErrNotReady
	require.Empty(t, p.look(t.Context()), "nothing is known before rules are in force")

	answer = verify.Permanent(policy.ReasonNotFound, errors.New("no such image"))
	facts := p.look(t.Context())
	require.Equal(t, []doctor.Fact{{ID: doctor.RegistryUnreachable, Message: "registry a.example.com answers", About: "a.example.com"}}, facts)
	require.Equal(t, facts, p.look(t.Context()))
	require.Equal(t, 2, asked, "what is well is not asked again so soon")

	at, answer = at.Add(registriesEvery), errors.New("connection refused")
	require.True(t, p.look(t.Context())[0].Bad)
	require.NotContains(t, p.look(t.Context())[0].Message, "refused")
	require.Equal(t, 4, asked, "what is not well is asked again")
}
