package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
)

// eachFlag visits the flags of a command and of those below it.
func eachFlag(command *cobra.Command, visit func(command string, flag *pflag.Flag)) {
	command.Flags().VisitAll(func(flag *pflag.Flag) { visit(command.CommandPath(), flag) })
	for _, sub := range command.Commands() {
		eachFlag(sub, visit)
	}
}

// A default in a flag's text can be wrong; the one that pflag prints cannot.
func TestNoFlagDescribesItsDefaultInWords(t *testing.T) {
	visited := 0
	eachFlag(newRoot(), func(command string, flag *pflag.Flag) {
		visited++
		require.NotContains(t, flag.Usage, "default", "%s --%s", command, flag.Name)
	})
	require.Greater(t, visited, 40)
}

func TestHelpShowsTheDefaultsInForce(t *testing.T) {
	serve := newServe()
	for name, want := range map[string]string{
		"verify-timeout": provider.DefaultVerifyTimeout.String(),
		"pass-ttl":       verify.DefaultPassTTL.String(),
		"cache-bytes":    "67108864",
		"in-flight":      "512",
	} {
		require.Equal(t, want, serve.Flag(name).DefValue, name)
	}
}
