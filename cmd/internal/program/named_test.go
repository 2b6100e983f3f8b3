package program

import (
	"io"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// limits are the named values of the tests.
type limits struct {
	count int
	bytes int64
	keep  time.Duration
	file  string
	named *Named
}

func parse(args ...string) (*limits, *pflag.FlagSet, error) {
	var l limits
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	l.named = RegisterNamed(f, "limit", "bounds", func(v *pflag.FlagSet) {
		v.IntVar(&l.count, "count", 3, "how many")
		v.Int64Var(&l.bytes, "bytes", 1<<20, "how much")
		v.DurationVar(&l.keep, "keep", time.Minute, "how long")
		v.StringVar(&l.file, "file", "", "where")
	})
	return &l, f, f.Parse(args)
}

func TestNamedValuesAreGivenTogetherOrOneByOneAndTheLastCounts(t *testing.T) {
	for _, args := range [][]string{
		{"--limit", "count=5,keep=1h,file=/a=b"},
		{"--limit=count=5", "--limit", "keep=1h", "--limit=file=/a=b"},
		{"--limit=count=1,count=5", "--limit=keep=1s", "--limit=file=/x,keep=1h", "--limit=file=/a=b"},
	} {
		l, f, err := parse(args...)
		require.NoError(t, err, args)
		require.Equal(t, []any{5, int64(1 << 20), time.Hour, "/a=b"}, []any{l.count, l.bytes, l.keep, l.file}, args)
		require.True(t, f.Changed("limit") && l.named.Values().Changed("count") && !l.named.Values().Changed("bytes"))
		require.Equal(t, "count=5,bytes=1048576,keep=1h0m0s,file=/a=b", f.Lookup("limit").Value.String())
	}
	l, _, err := parse("--limit", `"file=/a,b",count=1`)
	require.NoError(t, err)
	require.Equal(t, "/a,b", l.file)
	require.Equal(t, 1, l.count)
	for _, little := range []string{"count=0", "count=-1", "bytes=0", "keep=0s", "keep=-1h"} {
		_, _, err := parse("--limit", little)
		require.ErrorContains(t, err, "it must be more than 0", little)
	}
	l, _, err = parse("--limit", "file=")
	require.NoError(t, err)
	require.True(t, l.named.Values().Changed("file"))
}

func TestHelpShowsTheDefaultsOfNamedValues(t *testing.T) {
	_, f, err := parse()
	require.NoError(t, err)
	require.Equal(t, "      --limit NAME=VALUE   bounds (default count=3,bytes=1048576,keep=1m0s)\n", f.FlagUsages())
}

func TestNamedValuesThatAreWrongAreRefused(t *testing.T) {
	for given, says := range map[string]string{
		"size=3":             `"--limit" flag: there is no name "size"; the names are count, bytes, keep, file`,
		"3":                  `"--limit" flag: there is no name "3"; the names are`,
		"count":              `"--limit" flag: count has no value; use count=VALUE`,
		"count=":             `"--limit" flag: count is "", it must be a whole number`,
		"count=many":         `"--limit" flag: count is "many", it must be a whole number`,
		"bytes=1.5":          `"--limit" flag: bytes is "1.5", it must be a whole number`,
		"keep=3":             `"--limit" flag: keep is "3", it must be a duration such as 90s`,
		"count=4,keep":       `keep has no value`,
		"count=4,":           `there is no name ""`,
		"":                   "it must be NAME=VALUE",
		"count=4\nkeep=1h":   "it must be NAME=VALUE",
		`file="x`:            "it must be NAME=VALUE",
		"count=4,count=none": `count is "none"`,
	} {
		_, _, err := parse("--limit", given)
		require.ErrorContains(t, err, says, given)
	}
}
