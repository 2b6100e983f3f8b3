package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTablesFitTheirWidthAndLoseNoWord(t *testing.T) {
	reason := strings.Repeat("VerificationPolicy team-a/strict requires one of release ", 6)
	for name, image := range map[string]string{
		"short image": "registry.example.com/app:v1",
		"long image":  "registry.example.com/" + strings.Repeat("team/", 15) + "app:v1",
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := newScreen(&out)
			s.line("TITLE")
			s.row("IMAGE", "VERDICT", "REASON")
			s.row(image, "DENIED", reason)
			s.row("x", "ALLOWED", "fine")
			s.line("")
			s.row("A", "B")
			s.row(1, 2)
			require.NoError(t, s.flush())
			for line := range strings.Lines(out.String()) {
				require.LessOrEqual(t, utf8.RuneCountInString(line), tableWidth+1, line)
				require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"))
			}
			want := strings.Fields("TITLE IMAGE VERDICT REASON " + image + " DENIED " + reason + " x ALLOWED fine A B 1 2")
			require.ElementsMatch(t, want, strings.Fields(out.String()))
			require.Contains(t, out.String(), "\nA  B\n1  2\n")
		})
	}
}

func TestColourIsForTerminalsOnly(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	require.False(t, s.paint)
	s.paint = true
	s.row("x", "DENIED", "DENIED is no outcome here")
	s.row("y", "ALLOWED (warning)", "z")
	require.NoError(t, s.flush())
	require.Contains(t, out.String(), "x  \x1b[31mDENIED\x1b[0m             DENIED is no outcome here\n")
	require.Contains(t, out.String(), "y  \x1b[32mALLOWED (warning)\x1b[0m  z\n")

	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as terminals are
	require.NoError(t, err)
	defer func() { require.NoError(t, terminal.Close()) }()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	require.True(t, isTerminal(terminal))
	t.Setenv("NO_COLOR", "1")
	require.False(t, isTerminal(terminal))
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	require.False(t, isTerminal(terminal))
}

func TestDurationsHaveAUnitThatProgramsCanRead(t *testing.T) {
	for given, want := range map[time.Duration]string{
		0: "0ms", 1500 * time.Nanosecond: "0.002ms", 12500 * time.Microsecond: "12.5ms", 2 * time.Minute: "120000ms",
	} {
		text, err := duration(given).MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		_, err = time.ParseDuration(string(text))
		require.NoError(t, err)
	}
}

func TestCommandsToCopyAreNotBroken(t *testing.T) {
	const grant = "kubectl create rolebinding landwaiter-reference-reader --namespace=team-a-web --clusterrole=landwaiter-reference-reader " +
		"--serviceaccount=landwaiter-system:landwaiter"
	const sign = "cosign sign --key cosign.key registry.example.com/team-a/web/app@sha256:0123456789012345678901234567890123456789012345678901234567890123"
	var out bytes.Buffer
	s := newScreen(&out)
	s.row("Store team-a-web/registry", "not Ready", "AccessDenied", "Secret team-a-web/pull cannot be read: landwaiter has no permission to read it; "+
		"grant it with: "+grant+"; 3 images depend on it")
	s.row("team-a-web", "Deployment/web", "registry.example.com/team-a/web/app:v1", "ALLOWED", "DENIED", "no signature was found. To fix: "+sign)
	s.wrapped("", "    ", "not shown: you cannot list pods; run: "+grant)
	require.NoError(t, s.flush())
	require.Equal(t, 2, strings.Count(out.String(), grant), out.String())
	require.Contains(t, out.String(), sign)
	require.Contains(t, out.String(), "3 images depend on it")
}
