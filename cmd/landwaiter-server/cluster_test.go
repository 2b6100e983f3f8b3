package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/server/controller"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/pkg/server/serving"
)

func TestProviderObjectsLeadToTheServiceUnlessAFlagSaysWhere(t *testing.T) {
	options := provider.Options{VerifyTimeout: 2500 * time.Millisecond, MutateTimeout: 800 * time.Millisecond}
	flags := clusterFlags{serviceName: "lw", controller: controller.Options{OwnNamespace: "system"},
		providerObjects: []string{"lw-verify=/v1/verify", "lw-mutate=/v1/mutate"}}
	got, err := flags.providers(options)
	require.NoError(t, err)
	require.Equal(t, []serving.Provider{
		{Name: "lw-verify", URL: "https://lw.system.svc:443/v1/verify", TimeoutSeconds: 3},
		{Name: "lw-mutate", URL: "https://lw.system.svc:443/v1/mutate", TimeoutSeconds: 1},
	}, got)

	flags.providerURL, flags.providerSuffix = "https://lw.example.com:8443", "-provider"
	got, err = flags.providers(options)
	require.NoError(t, err)
	require.Equal(t, serving.Provider{Name: "lw-verify", URL: "https://lw.example.com:8443/v1/verify", TimeoutSeconds: 3, Role: "lw-verify-provider"}, got[0])
}

func TestGatekeeperWaitsForAProviderLongerThanAnAnswerTakes(t *testing.T) {
	for answer, want := range map[time.Duration]int64{
		100 * time.Millisecond: 1, 800 * time.Millisecond: 1, 801 * time.Millisecond: 2, time.Second: 2, 2500 * time.Millisecond: 3, 3 * time.Second: 4,
	} {
		flags := clusterFlags{providerObjects: []string{"v=/v1/verify", "m=/v1/mutate"}}
		got, err := flags.providers(provider.Options{VerifyTimeout: answer, MutateTimeout: answer})
		require.NoError(t, err)
		require.Equal(t, want, got[0].TimeoutSeconds, answer)
		require.Equal(t, want, got[1].TimeoutSeconds, answer)
	}
	for seconds := range int64(30) { // as the chart computes them
		flags := clusterFlags{providerObjects: []string{"v=/v1/verify", "m=/v1/mutate"}}
		got, err := flags.providers(provider.Options{VerifyTimeout: time.Duration(seconds+1)*time.Second - 500*time.Millisecond,
			MutateTimeout: time.Duration(seconds+1)*time.Second - 200*time.Millisecond})
		require.NoError(t, err)
		require.Equal(t, seconds+1, got[0].TimeoutSeconds)
		require.Equal(t, seconds+1, got[1].TimeoutSeconds)
	}
}
