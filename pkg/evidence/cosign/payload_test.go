package cosign_test

import (
	"strings"
	"testing"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Each payload is signed by the trusted key, so only its form is wrong.
func TestDeniesPayloadThatTwoReadersCouldReadDifferently(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	sum := img.Descriptor.Digest.String()
	const identity, kind = `"identity":{"docker-reference":"x"}`, `"type":"cosign container image signature"`
	subject := `"image":{"docker-manifest-digest":"` + sum + `"}`
	good := `{"critical":{` + identity + `,` + subject + `,` + kind + `},"optional":null}`
	checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
	requireValid(t, check(checker, img, legacy(t, img, key, fixture.CosignOptions{Payload: []byte(good)})), key)
	for name, payload := range map[string]string{
		"duplicate critical":     `{"critical":{},` + good[1:],
		"duplicate digest":       strings.Replace(good, `{"docker-manifest-digest"`, `{"docker-manifest-digest":"`+sum+`","docker-manifest-digest"`, 1),
		"duplicate annotation":   strings.Replace(good, "null", `{"a":"b","a":"c"}`, 1),
		"duplicate in a list":    strings.Replace(good, "null", `{"a":[{"b":1,"b":2}]}`, 1),
		"escaped duplicate":      `{"\u0063ritical":{},` + good[1:],
		"other case":             strings.Replace(good, `"critical"`, `"Critical"`, 1),
		"second in other case":   `{"Critical":{},` + good[1:],
		"atomic type":            strings.Replace(good, "cosign container image signature", "atomic container signature", 1),
		"unknown type":           strings.Replace(good, "cosign container image signature", "something else", 1),
		"no type":                strings.Replace(good, `,`+kind, "", 1),
		"unknown critical":       strings.Replace(good, kind, kind+`,"new":1`, 1),
		"unknown in image":       strings.Replace(good, sum+`"`, sum+`","new":1`, 1),
		"unknown in identity":    strings.Replace(good, `"x"`, `"x","new":1`, 1),
		"unknown beside":         strings.Replace(good, `"optional"`, `"new":1,"optional"`, 1),
		"no identity":            strings.Replace(good, identity+`,`, "", 1),
		"no image":               strings.Replace(good, subject+`,`, "", 1),
		"digest is a list":       strings.Replace(good, `"`+sum+`"`, `["`+sum+`"]`, 1),
		"reference is a number":  strings.Replace(good, `"x"`, `1`, 1),
		"optional is a list":     strings.Replace(good, "null", "[]", 1),
		"trailing data":          good + good,
		"trailing bracket":       good + "}",
		"an array":               "[" + good + "]",
		"a string":               `"x"`,
		"null":                   "null",
		"not JSON":               "critical",
		"cut off":                good[:len(good)-1],
		"not UTF-8":              strings.Replace(good, `"x"`, "\"\xff\"", 1),
		"a comment":              good + "// x",
		"byte order mark":        "\ufeff" + good,
		"critical is a string":   `{"critical":"x","optional":null}`,
		"digest without members": strings.Replace(good, subject, `"image":{}`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			e := legacy(t, img, key, fixture.CosignOptions{Payload: []byte(payload)})
			requireInvalid(t, check(checker, img, e), policy.ReasonMalformed)
		})
	}
	deep := strings.Replace(good, "null", `{"a":`+strings.Repeat("[", 40)+strings.Repeat("]", 40)+`}`, 1)
	requireInvalid(t, check(checker, img, legacy(t, img, key, fixture.CosignOptions{Payload: []byte(deep)})), policy.ReasonLimitExceeded)
}
