package library

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/stretchr/testify/require"
)

// BenchmarkVerifiedImages evaluates the template and the yardstick, a dozen lines
// that are as safe, in turns, and reports the time of each and their ratio. The
// provider's answer is read as Gatekeeper reads it.
func BenchmarkVerifiedImages(b *testing.B) {
	yardstick, err := os.ReadFile(filepath.Join("testdata", "yardstick.rego"))
	require.NoError(b, err)
	theirs, err := compile(b.Context(), rego.Module("yardstick.rego", string(yardstick)))
	require.NoError(b, err)
	ours, err := compile(b.Context(), rego.Module("template.rego", source(b, "verified-images")))
	require.NoError(b, err)
	for _, outcome := range []struct {
		name    string
		allowed bool
	}{{"allowed", true}, {"denied", false}} {
		for _, images := range []int{1, 10, 50} {
			b.Run(fmt.Sprintf("%s/images=%d", outcome.name, images), func(b *testing.B) {
				var took [2]time.Duration
				input, answer := realPod(b, images), realAnswer(b, images, outcome.allowed)
				for b.Loop() {
					for i, query := range []rego.PreparedEvalQuery{theirs, ours} {
						began := time.Now()
						messages, _, err := review(b.Context(), query, input, says(answer))
						took[i] += time.Since(began)
						if err != nil || len(messages) == 0 != outcome.allowed {
							b.Fatalf("%v: %v", err, messages)
						}
					}
				}
				b.ReportMetric(float64(took[0].Nanoseconds())/float64(b.N), "ns/yardstick")
				b.ReportMetric(float64(took[1].Nanoseconds())/float64(b.N), "ns/template")
				b.ReportMetric(float64(took[1])/float64(took[0]), "over-yardstick")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// realPod is the review of a new pod with the fields that the API server fills in.
func realPod(b *testing.B, images int) ast.Value {
	b.Helper()
	mounts := []any{object{"name": "kube-api-access-x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}}
	var list []any
	for i := range images {
		list = append(list, object{
			"name": fmt.Sprintf("c%d", i), "image": realImage(i), "imagePullPolicy": "IfNotPresent", "resources": object{},
			"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "volumeMounts": mounts,
		})
	}
	input := with(podReview("team-a", object{"containers": list, "serviceAccountName": "default", "restartPolicy": "Always",
		"volumes": []any{object{"name": "kube-api-access-x", "projected": object{"sources": []any{object{"serviceAccountToken": object{"path": "token"}}}}}}}),
		object{"provider": "landwaiter-verdict"})
	text, err := json.Marshal(input)
	require.NoError(b, err)
	var plain any
	require.NoError(b, json.Unmarshal(text, &plain))
	value, err := ast.InterfaceToValue(plain)
	require.NoError(b, err)
	return value
}

func realImage(i int) string { return fmt.Sprintf("registry.example.com/team-a/app-%d:v1", i) }

// realAnswer is Gatekeeper's form of Landwaiter's answer at /v1/verdict, in the order of the keys that templates ask for.
func realAnswer(b *testing.B, images int, allowed bool) *externaldata.ProviderResponse {
	b.Helper()
	response := &externaldata.ProviderResponse{}
	for i := range images {
		value := object{"isSuccess": true}
		if !allowed {
			value = object{"isSuccess": false, "traceID": "0af7651916cd43dd8448eb211c80319c",
				"reason": "VerificationPolicy team-a/images requires a valid signature for release-signature: no signature was found (looked at the tag " +
					"sha256-9f86d081884c….sig and the referrers of this digest). To fix, if your build made it: cosign sign --key KEY --use-signing-config=false " +
					"--tlog-upload=false " +
					realImage(i) + "@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}
		}
		response.Response.Items = append(response.Response.Items, externaldata.Item{Key: "[team-a]" + realImage(i), Value: value})
	}
	slices.SortFunc(response.Response.Items, func(x, y externaldata.Item) int { return strings.Compare(x.Key, y.Key) })
	return response
}

// BenchmarkManyContainers is the worst that a team can do to Gatekeeper by a pod:
// many containers, with as many exempt paths as a constraint may have.
func BenchmarkManyContainers(b *testing.B) {
	query, err := compile(b.Context(), rego.Module("template.rego", source(b, "verified-images")))
	require.NoError(b, err)
	var paths []any
	for i := range 64 {
		paths = append(paths, fmt.Sprintf("registry.example.com/mirror-%d/*", i))
	}
	for _, n := range []int{1000, 4000} {
		images := make([]string, n)
		for i := range images {
			images[i] = realImage(i)
		}
		input := with(podReview("team-a", pod(images...)), object{"provider": "landwaiter-verdict", "exemptImages": paths})
		value, err := ast.InterfaceToValue(input)
		require.NoError(b, err)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := review(b.Context(), query, value, says(answers([]any{}, []any{}, "too many"))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
