package verify_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

// heavy returns a configuration with so many verifiers, all of which check signatures
// that none of them trusts, and the registry with as many as are tried.
func heavy(t *testing.T, namespace verify.Namespace, verifiers int, before func(string)) *verify.Config {
	t.Helper()
	r := newRegistry()
	for i := range verify.MaxSignatures {
		r.manifest(t, true, fmt.Sprintf("stranger %d", i))
	}
	var all []*verify.Verifier
	var names []string
	for i := range verifiers {
		v := verifier(t, fmt.Sprintf("v%d", i), "k1")
		v.Checker.(*checker).before = before
		all, names = append(all, v), append(names, v.Source.Name)
	}
	c := config(tier(t, r, verify.Requirement{AnyOf: names, AtLeast: 1}, all...))
	c.Namespace = namespace
	return c
}

// admit verifies a signed image of a namespace, which must be allowed, and returns how long
// that took.
func admit(t *testing.T, e *verify.Engine, namespace verify.Namespace) time.Duration {
	t.Helper()
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	c := config(tier(t, r, anyA, verifier(t, "a", "k1")))
	c.Namespace = namespace
	began := time.Now()
	result := e.Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, policy.Allowed, result.Verdict.Outcome(), result.Verdict.Reason)
	return time.Since(began)
}

func TestWhatAFindingCostsDoesNotDependOnHowManyThereAre(t *testing.T) {
	cost := func(verifiers int) int {
		c, e := heavy(t, "team-a", verifiers, nil), engine(newCache(), verify.Options{})
		var result verify.Result
		took := memory.Allocated(func() { result = e.Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String())) })
		require.Equal(t, policy.Denied, result.Verdict.Outcome(), result.Verdict.Reason)
		require.Len(t, result.Findings, verifiers*verify.MaxSignatures)
		return took / len(result.Findings)
	}
	few, many := cost(10), cost(151)
	require.Less(t, many, 3*few, "bytes allocated for each finding")
}

func TestAFloodOfChecksDelaysAnotherAccountByOneCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(newCache(), verify.Options{Processors: 1})
		slow := func(string) { time.Sleep(50 * time.Millisecond) } // virtual time
		flood := heavy(t, "team-b", 200, slow)
		for i := range 20 {
			go e.Verify(t.Context(), flood, ref(t, fmt.Sprintf("r.example.com/flood%d@%s", i, appDigest)))
		}
		time.Sleep(time.Second)

		took := admit(t, e, "team-a")
		// It takes a turn to plan, to parse, to check before and after its fetch, and to
		// decide, and waits for one check of the flood each time.
		require.LessOrEqual(t, took, 5*50*time.Millisecond)
		time.Sleep(time.Minute)
	})
}

func TestAnotherAccountGoesFirstBetweenTheStepsOfACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(newCache(), verify.Options{Processors: 1})
		busy := newRegistry()
		busy.manifest(t, true, "stranger")
		v := verifier(t, "a", "k1")
		v.Checker = stepping{v.Checker}
		long := config(tier(t, busy, anyA, v))
		long.Namespace = "team-b"
		go e.Verify(t.Context(), long, ref(t, "r.example.com/busy@"+appDigest.String()))
		time.Sleep(time.Second)

		took := admit(t, e, "team-a")
		require.LessOrEqual(t, took, 5*10*time.Millisecond)
		time.Sleep(time.Minute)
	})
}

// stepping is a checker with thousands of steps.
type stepping struct{ verify.Checker }

func (stepping) Check(ctx context.Context, _ verify.Subject, _ verify.Signature, _ verify.Fetch, _ time.Time) (policy.Proof, error) {
	for range 10_000 {
		time.Sleep(10 * time.Millisecond) // virtual time
		if err := verify.Step(ctx); err != nil {
			return policy.Proof{}, err
		}
	}
	return policy.Proof{}, nil
}

// A denial is cached, so that whoever asks again and again does not make the account pay each time.
func TestEvidenceThatTakesLongToCheckIsDeniedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(newCache(), verify.Options{Processors: 1, WorkTimeout: 10 * time.Second})
		checks := 0
		c := heavy(t, "team-a", 151, func(string) {
			checks++
			time.Sleep(100 * time.Millisecond)
		})
		began := time.Now()
		result := e.Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
		require.Equal(t, policy.Denied, result.Verdict.Outcome(), result.Verdict.Reason)
		last := result.Findings[len(result.Findings)-1]
		require.Contains(t, last.Message, "takes longer than 6s")
		require.True(t, last.Incomplete, "an expression that asks for its absence must not hold")
		require.LessOrEqual(t, time.Since(began), 6*time.Second+500*time.Millisecond)
		before := checks
		result = e.Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
		require.Equal(t, policy.Denied, result.Verdict.Outcome(), result.Verdict.Reason)
		require.Equal(t, before, checks)
	})
}

func TestAChecksTimeEndsWithThatOfItsImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(newCache(), verify.Options{Processors: 1, WorkTimeout: 2 * time.Second})
		c := heavy(t, "team-a", 151, func(string) { time.Sleep(100 * time.Millisecond) })
		began := time.Now()
		result := e.Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
		require.Equal(t, policy.Undecided, result.Verdict.Outcome(), result.Verdict.Reason)
		require.LessOrEqual(t, time.Since(began), 2*time.Second+200*time.Millisecond)
	})
}

func TestTheRegistryIsNotWaitedForInATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(newCache(), verify.Options{Processors: 1})
		tarpit := newRegistry()
		tarpit.manifest(t, true, "never comes")
		tarpit.fetch = waiting
		go e.Verify(t.Context(), config(tier(t, tarpit, anyA, verifier(t, "a", "k1"))), ref(t, "r.example.com/slow@"+appDigest.String()))
		synctest.Wait()

		require.Zero(t, admit(t, e, "team-b"))
		time.Sleep(time.Minute)
	})
}

func TestWhatARegistrySentIsReadInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(newCache(), verify.Options{Processors: 1})
		large := newRegistry()
		large.manifest(t, true, "k1:"+appDigest.String())
		large.fetch = func(ctx context.Context, _ ocispec.Descriptor) error {
			ctx, leave, err := verify.TakeTurn(ctx)
			if err != nil {
				return err
			}
			defer leave()
			for range 10_000 {
				time.Sleep(10 * time.Millisecond) // virtual time
				if err := verify.Step(ctx); err != nil {
					return err
				}
			}
			return nil
		}
		go e.Verify(t.Context(), config(tier(t, large, anyA, verifier(t, "a", "k1"))), ref(t, "r.example.com/large@"+appDigest.String()))
		synctest.Wait()

		took := admit(t, e, "team-b")
		require.Positive(t, took)
		require.LessOrEqual(t, took, 5*10*time.Millisecond)
		time.Sleep(time.Minute)
	})
}

func TestOutsideAVerificationNoTurnIsTaken(t *testing.T) {
	ctx, leave, err := verify.TakeTurn(t.Context())
	require.NoError(t, err)
	require.NoError(t, verify.Step(ctx))
	leave()
}

// While every processor checks evidence, what is in memory is answered, and so is what needs no evidence.
func TestWhatNeedsNoEvidenceWaitsForNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(newCache(), verify.Options{Processors: 1})
		r := newRegistry()
		r.manifest(t, true, "k1:"+appDigest.String())
		own := config(tier(t, r, anyA, verifier(t, "a", "k1")))
		known, unplanned := ref(t, "r.example.com/app@"+appDigest.String()), ref(t, "r.example.com/other@"+appDigest.String())
		own.Tiers[0].Judge = verify.ByRules(append([]verify.Rule{{Images: patterns(t, "r.example.com/other"), Action: verify.Deny}}, own.Tiers[0].Judge.Rules()...),
			verify.DefaultDeny)
		require.Equal(t, policy.Allowed, e.Verify(t.Context(), own, known).Verdict.Outcome())
		_, ok := e.Recall(own, unplanned)
		require.True(t, ok, "it follows from the policy alone")

		busy := heavy(t, "team-b", 1, func(string) { time.Sleep(time.Hour) })
		go e.Verify(t.Context(), busy, ref(t, "r.example.com/busy@"+appDigest.String()))
		synctest.Wait()
		result, ok := e.Recall(own, known)
		require.True(t, ok)
		require.Equal(t, policy.Allowed, result.Verdict.Outcome())
		result, ok = e.Recall(own, unplanned)
		require.True(t, ok)
		require.Equal(t, policy.Denied, result.Verdict.Outcome())
		began := time.Now()
		require.Equal(t, policy.Denied, e.Verify(t.Context(), own, unplanned).Verdict.Outcome())
		require.Zero(t, time.Since(began))
		time.Sleep(100 * time.Hour)
	})
}

func TestEvidenceWithoutMemoryLeavesItUndecided(t *testing.T) {
	for name, c := range map[string]struct {
		bytes   int64
		outcome policy.Outcome
	}{"room for all": {1 << 20, policy.Denied}, "no room for the manifests": {1 << 10, policy.Undecided},
		"no room for the findings": {30 << 10, policy.Undecided}} {
		t.Run(name, func(t *testing.T) {
			e, cache := verify.Options{EvidenceBytes: c.bytes}, newCache()
			result := engine(cache, e).Verify(t.Context(), heavy(t, "team-a", 2, nil), ref(t, "r.example.com/app@"+appDigest.String()))
			require.Equal(t, c.outcome.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
			require.Equal(t, c.outcome == policy.Undecided, result.Overloaded)
			if result.Overloaded {
				require.Contains(t, result.Verdict.Reason, "too much evidence in memory")
				require.Zero(t, cache.verdicts())
			}
		})
	}
}

// A condition that holds for what was found must not hold because the rest found no
// memory.
func TestAConditionNeverHoldsForEvidenceThatFoundNoMemory(t *testing.T) {
	for bytes := int64(256); bytes <= 64<<10; bytes += 256 {
		r := newRegistry()
		r.manifest(t, true, "k1:"+appDigest.String())
		for i := range 4 {
			r.manifest(t, i%2 == 0, "k2:"+appDigest.String())
		}
		nobodyElse := func(_ func() error, proven []policy.Finding) (bool, error) {
			for _, f := range proven {
				if f.Signer() == "k2" {
					return false, nil
				}
			}
			return true, nil
		}
		c := config(tier(t, r, verify.Requirement{Condition: nobodyElse, AtLeast: 1}, verifier(t, "a", "k1"), verifier(t, "b", "k2")))
		result := engine(newCache(), verify.Options{EvidenceBytes: bytes}).Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
		require.NotEqual(t, policy.Allowed, result.Verdict.Outcome(), "%d bytes", bytes)
	}
}

// Anyone who can push to a repository must not be able to hide a signature behind the
// limits, and so make an expression hold that demands its absence.
func TestSignaturesBeyondTheLimitNeverMakeAConditionHold(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	revoked := func(_ func() error, proven []policy.Finding) (bool, error) {
		for _, f := range proven {
			if f.Signer() == "revoked" {
				return false, nil
			}
		}
		return true, nil
	}
	c := config(tier(t, r, verify.Requirement{Condition: revoked, AtLeast: 1}, verifier(t, "a", "k1", "revoked")))
	image := ref(t, "r.example.com/app@"+appDigest.String())
	require.Equal(t, policy.Allowed, engine(newCache(), verify.Options{}).Verify(t.Context(), c, image).Verdict.Outcome())
	for i := range verify.MaxSignatures {
		r.manifest(t, true, fmt.Sprintf("stranger %d", i))
	}
	r.manifest(t, true, "revoked:"+appDigest.String())
	result := engine(newCache(), verify.Options{}).Verify(t.Context(), c, image)
	require.Equal(t, policy.Denied, result.Verdict.Outcome(), result.Verdict.Reason)
	require.Contains(t, result.Verdict.Reason, "only the first 32")
}

func TestAnArtifactTypeThatIsTooLongIsNotKept(t *testing.T) {
	r := newRegistry()
	content := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":%q,"layers":[]}`,
		strings.Repeat("a", 1<<18))
	layer1 := r.put(fakeLayer, []byte("stranger"))
	content = strings.Replace(content, `"layers":[]`, fmt.Sprintf(`"layers":[{"mediaType":%q,"digest":%q,"size":8}]`, fakeLayer, layer1.Digest), 1)
	desc := r.put("application/vnd.oci.image.manifest.v1+json", []byte(content))
	r.listed = append(r.listed, desc)
	result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))),
		ref(t, "r.example.com/app@"+appDigest.String()))
	require.Len(t, result.Findings, 1)
	require.Equal(t, fakeLayer, result.Findings[0].ArtifactType)
}

// waiting is a registry that never answers.
func waiting(ctx context.Context, _ ocispec.Descriptor) error {
	<-ctx.Done()
	return ctx.Err()
}

func patterns(t *testing.T, s string) []image.Pattern {
	t.Helper()
	p, err := image.ParsePattern(s)
	require.NoError(t, err)
	return []image.Pattern{p}
}

func TestAnIndexThatFindsNoMemoryLeavesTheImageUndecided(t *testing.T) {
	for bytes, outcome := range map[int64]policy.Outcome{1 << 20: policy.Allowed, 64 << 10: policy.Undecided} {
		r := newRegistry()
		signed := part("amd64")
		signed.Annotations = map[string]string{"padding": strings.Repeat("x", 40<<10)}
		index := r.index(t, ocispec.MediaTypeImageIndex, signed)
		r.manifest(t, true, "k1:"+signed.Digest.String())
		l := tier(t, r, anyA, verifier(t, "a", "k1"))
		l.Judge.Rules()[0].IndexManifests = true
		result := engine(newCache(), verify.Options{EvidenceBytes: bytes}).Verify(t.Context(), config(l), ref(t, "r.example.com/app@"+index.Digest.String()))
		require.Equal(t, outcome.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
		require.Equal(t, outcome == policy.Undecided, result.Overloaded)
	}
}
