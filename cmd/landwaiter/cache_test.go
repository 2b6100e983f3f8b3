package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/stretchr/testify/require"
)

func TestTheCacheInRedisIsCountedAndPurgedByNamespace(t *testing.T) {
	server := miniredis.RunT(t)
	for name, value := range map[string]string{"landwaiter:team-a:verdict:1": "12345", "landwaiter:team-a:verdict:2": "1", "landwaiter:team-ab:verdict:3": "12",
		"landwaiter:-:verdict:4": "123", "other:x": "1"} {
		require.NoError(t, server.Set(name, value))
	}
	do := func(want int, args ...string) string {
		var out, complaints bytes.Buffer
		require.Equal(t, want, run(t.Context(), append([]string{"cache"}, args...), &out, &complaints), complaints.String())
		return out.String() + complaints.String()
	}
	url := "redis://" + server.Addr()
	require.JSONEq(t,
		`{"namespaces":[{"namespace":"-","keys":1,"bytes":3},{"namespace":"team-a","keys":2,"bytes":6},{"namespace":"team-ab","keys":1,"bytes":2}],"keys":4,`+
			`"bytes":11}`, do(program.ExitOK, "show", "--redis-url", url, "-o", "json"))
	require.Contains(t, do(program.ExitOK, "show", "--redis-url", url), "(all)      4     11")
	require.Equal(t, "2 keys of team-a removed\n", do(program.ExitOK, "purge", "--redis-url", url, "--namespace", "team-a"))
	require.Equal(t, "0 keys of team-a removed\n", do(program.ExitOK, "purge", "--redis-url", url, "--namespace", "team-a"))
	require.JSONEq(t, `{"namespace":"team-a","keys":0}`, do(program.ExitOK, "purge", "--redis-url", url, "--namespace", "team-a", "-o", "json"))
	require.Equal(t, "1 keys of - removed\n", do(program.ExitOK, "purge", "--redis-url", url, "--cluster-scope"))
	require.Equal(t, []string{"landwaiter:team-ab:verdict:3", "other:x"}, server.Keys())

	for says, args := range map[string][]string{
		"what to remove is missing":                       {"purge", "--redis-url", url},
		"--cluster-scope":                                 {"purge", "--redis-url", url, "--namespace", "team-a", "--cluster-scope"},
		"not a DNS-1123 label":                            {"purge", "--redis-url", url, "--namespace", "*"},
		"no Redis is given":                               {"show"},
		"must be table, json, yaml, jsonpath=TEMPLATE or": {"show", "--redis-url", url, "-o", "xml"},
		"cannot be used together":                         {"show", "--redis-url", url, "--redis-url-file", "x"},
		"must be used together":                           {"show", "--redis-url", url, "--redis-option", "client-cert=x"},
		"--redis-url-file":                                {"show", "--redis-url-file", filepath.Join(t.TempDir(), "none")},
		"does not begin with redis":                       {"show", "--redis-url", url, "--redis-option", "ca=cache_test.go"},
		"must look like":                                  {"show", "--redis-url", "http://x"},
	} {
		require.Contains(t, do(program.ExitUsage, args...), says)
	}
	server.Close()
	require.Contains(t, do(program.ExitUnavailable, "show", "--redis-url", url), "find keys")
	require.Contains(t, do(program.ExitOK), "Inspect and purge")
}
