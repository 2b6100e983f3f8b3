package cache

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

// golden is what a release writes: to change it without another wireVersion makes
// replicas misread each other.
const golden = `{"version":7,"image":"r.example.com/a@sha256:2","generation":"g","program":"v1","written":1764000000000,"outcome":"allowed",` +
	`"policy":{"kind":"VerificationPolicy","namespace":"team-a","name":"strict"},` +
	`"reason":"signed by release","remediation":"renew it","warning":"expires soon","unverified":true,"findings":[{"verifier":"release",` +
	`"source":{"kind":"ClusterVerifier","name":"release"},"type":"Cosign","result":"valid","signer":"sha256:1","digest":"sha256:2",` +
	`"artifactType":"application/vnd.example","message":"the signature is valid","reason":"WrongKey","remediation":"sign it again",` +
	`"extensions":{"claims":{"n":1.5},"signatures":[{"issuer":"i"}]}}]}`

func goldenEntry() verify.Entry {
	return verify.Entry{
		Verdict: judged.As(policy.Allowed, policy.Verdict{Policy: policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "strict"},
			Reason: "signed by release", Remediation: "renew it", Warning: "expires soon", Unverified: true}),
		Findings: []policy.Finding{
			judged.Proven("sha256:1", policy.Finding{Verifier: "release", Source: policy.ObjectRef{Kind: "ClusterVerifier", Name: "release"}, Type: "Cosign",
				Digest: "sha256:2", ArtifactType: "application/vnd.example",
				Message: "the signature is valid", Reason: policy.ReasonWrongKey, Remediation: "sign it again",
				Extensions: map[string]any{"claims": map[string]any{"n": 1.5}, "signatures": []any{map[string]any{"issuer": "i"}}}})},
	}
}

func goldenOrigin() origin {
	return origin{Image: "r.example.com/a@sha256:2", Generation: "g", Program: "v1", Written: 1764000000000}
}

// readEntry decodes an entry as a replica does.
func readEntry(plain []byte) (verify.Entry, error) {
	wire, err := decode(plain)
	if err != nil {
		return verify.Entry{}, err
	}
	return wire.entry()
}

func TestTheEncodingIsStable(t *testing.T) {
	written, err := encode(goldenEntry(), goldenOrigin())
	require.NoError(t, err)
	require.Equal(t, golden, string(written))
	read, err := readEntry([]byte(golden))
	require.NoError(t, err)
	require.Equal(t, goldenEntry(), read)
	wire, err := decode([]byte(golden))
	require.NoError(t, err)
	require.Equal(t, goldenOrigin(), wire.origin)
}

// A field that is added to a verdict or finding must be given to other replicas, or
// be listed here with the reason why not.
func TestEveryFieldIsShared(t *testing.T) {
	var entry verify.Entry
	fill(reflect.ValueOf(&entry.Verdict).Elem(), "Verdict")
	fill(reflect.ValueOf(&entry.Findings).Elem(), "Findings")
	entry.Verdict = judged.As(policy.Allowed, entry.Verdict)
	entry.Verdict.Doubtful, entry.Verdict.Cause, entry.Verdict.Remedy = false, "", "" // such verdicts are never kept
	invalid, unknown := entry.Findings[0], entry.Findings[0]
	invalid.Unknown = false
	for _, found := range []policy.Finding{invalid, judged.Proven("k1", invalid), unknown} {
		entry.Findings[0] = found
		written, err := encode(entry, goldenOrigin())
		require.NoError(t, err)
		read, err := readEntry(written)
		require.NoError(t, err)
		require.Equal(t, entry, read)
	}
	require.Equal(t, 4, reflect.TypeFor[verify.Entry]().NumField(), "Descriptor is for tags, which stay in memory, and evidence comes alone")
}

func TestEvidenceIsSharedAndNothingThatIsNotWhatItsDigestSays(t *testing.T) {
	manifest, blob := []byte(`{"a":1}`), []byte("payload")
	entry := verify.Entry{Evidence: &verify.Evidence{Listed: time.UnixMilli(1764000000000), Listing: "with attestation tags", Refused: "g",
		Subject: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("image"), Size: 7},
		Lists: map[string][]ocispec.Descriptor{"r.example.com/a": {
			{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(manifest), Size: 7, Data: manifest},
			{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("not read"), Size: 9}}, "mirror.example.com/a": {}},
		Content: map[digest.Digest][]byte{digest.FromBytes(blob): blob}}}
	written, err := encode(entry, goldenOrigin())
	require.NoError(t, err)
	read, err := readEntry(written)
	require.NoError(t, err)
	require.Equal(t, entry, read)
	require.Equal(t, policy.Denied, read.Verdict.Outcome(), "evidence allows nothing by itself")

	for name, change := range map[string]func(*verify.Evidence){
		"a listed manifest":           func(e *verify.Evidence) { e.Lists["r.example.com/a"][0].Data = []byte(`{"a":2}`) },
		"a blob":                      func(e *verify.Evidence) { e.Content[digest.FromBytes(blob)] = []byte("other") },
		"a digest of another form":    func(e *verify.Evidence) { e.Content["x"] = blob },
		"a digest of no known method": func(e *verify.Evidence) { e.Content["md5:00"] = blob },
	} {
		t.Run(name, func(t *testing.T) {
			read, err := readEntry(written)
			require.NoError(t, err)
			change(read.Evidence)
			changed, err := encode(read, goldenOrigin())
			require.NoError(t, err)
			_, err = readEntry(changed)
			require.Error(t, err)
		})
	}
}

// fill sets every field to something else than its zero value.
func fill(v reflect.Value, name string) {
	if at, ok := v.Addr().Interface().(*time.Time); ok {
		*at = time.Date(2026, 11, 29, 12, 0, 0, 5, time.UTC)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Int:
		v.SetInt(1)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]any{name: "x"}))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name)
	case reflect.Struct:
		for i := range v.NumField() {
			switch name := v.Type().Field(i).Name; name {
			case "outcome", "signer": // which the test sets
			case "advised": // advice about exceptions is added to cached verdicts, and is not cached
			default:
				fill(v.Field(i), name)
			}
		}
	default:
		panic("give " + name + " a value of kind " + v.Kind().String())
	}
}

func TestOnlyWhatWasEncodedDecodes(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		other    bool
	}{
		"a later version":   {`"version":7`, `"version":8`, true},
		"an older version":  {`"version":7`, `"version":6`, true},
		"no version":        {`"version":7,`, ``, true},
		"the Go struct":     {golden, `{"Verdict":{"Outcome":1,"Reason":"signed"}}`, true},
		"undecided":         {`"allowed"`, `"undecided"`, false},
		"no outcome":        {`"outcome":"allowed",`, ``, false},
		"an unknown result": {`"valid"`, `"perhaps"`, false},
		"an unknown field":  {`"reason":"signed by release"`, `"reason":"x","unless":"y"`, false},
		"no JSON":           {golden, `x`, false},
		"nothing":           {golden, ``, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, golden, c.from)
			entry, err := readEntry([]byte(strings.Replace(golden, c.from, c.to, 1)))
			require.Error(t, err)
			require.Equal(t, c.other, errors.Is(err, errOtherVersion))
			require.Zero(t, entry)
		})
	}
	_, err := encode(verify.Entry{Verdict: judged.As(policy.Allowed, policy.Verdict{Doubtful: true})}, goldenOrigin())
	require.Error(t, err)
}
