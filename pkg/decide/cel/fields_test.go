package cel_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

func TestFieldsThatNoObjectHasAreRefused(t *testing.T) {
	fields := cel.Fields{Of: map[string][]string{"findings[]": {"verifier", "signer", "digest", "facts"}, "signer": {"subject", "claims"},
		"signer.claims": {"issuer"}}, Nearest: policy.Nearest}
	all := cel.Variables{"findings": cel.Any, "signer": cel.Any, "predicate": cel.Any}
	for text, want := range map[string]string{
		`findings.exists(f, f.sgner == "a")`:                            "line 1, column 21: an entry of findings has no field sgner; did you mean signer?",
		`findings.exists(f, has(f.sgner))`:                              "did you mean signer?",
		`findings.exists(f, f.?sgner.orValue("") == "a")`:               "did you mean signer?",
		`findings.exists(f, f["sgner"] == "a")`:                         "did you mean signer?",
		`findings.exists(f, f[?"sgner"].hasValue())`:                    "did you mean signer?",
		`findings.exists(f, f.elsewhere == "a")`:                        "has no field elsewhere; its fields are verifier, signer, digest, facts",
		`!findings.all(f, findings.exists_one(g, f.signer != g.sgner))`: "did you mean signer?",
		`findings[0].sgner == "a"`:                                      "did you mean signer?",
		`findings[?0].?sgner.hasValue()`:                                "did you mean signer?",
		`findings.signer == "a"`: "findings is a list, and has no field signer; ask for one of its entries, as in " +
			"findings.exists(x, x.verifier == …)",
		`signer.sbject == "a"`:                                                 "line 1, column 7: signer has no field sbject; did you mean subject?",
		`signer.claims.isuer == "a"`:                                           "signer.claims has no field isuer; did you mean issuer?",
		`signer.?claims.?isuer.orValue("") == "a"`:                             "did you mean issuer?",
		`predicate.l.exists(p, p.x == signer.sbject)`:                          "did you mean subject?",
		"true ||\n" + `findings.exists(f, f.sgner == "a")`:                     "line 2, column 21: ",
		`findings.exists(f, f.` + strings.Repeat("x", 7000) + ` == "a")`:       "has no field xxx",
		`findings.exists(f, f.signer == "a" && findings.all(f, f.verifer=="")`: "Syntax error",
	} {
		_, err := cel.Compile(text, all, fields)
		require.ErrorContains(t, err, want, "%.80s", text)
		requireLine(t, err)
	}
	for _, text := range []string{
		`findings.exists(f, f.signer == "a" && f.facts.anything == 1 && has(f.facts.other))`, `findings[0]["signer"] == "a"`, "findings.size() > 0",
		`signer.claims.issuer == signer.subject`, `predicate.sgner == "a" && predicate.exists(f, f.sgner)`,
		`findings.exists(f, predicate.exists(f, f.sgner))`, `predicate.exists(signer, signer.sbject == "a")`, `predicate.exists(findings, findings.x)`,
	} {
		_, err := cel.Compile(text, all, fields)
		require.NoError(t, err, text)
	}
}
