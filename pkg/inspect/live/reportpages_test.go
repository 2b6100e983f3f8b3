package live

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

func TestAPageOfReportsIsReadWhateverItsOrder(t *testing.T) {
	items := `[{"metadata":{"namespace":"a","name":"x"},"source":"s"},{"metadata":{"namespace":"b"},"results":7}]`
	for name, text := range map[string]string{
		"metadata first": `{"kind":"ReportList","metadata":{"continue":"more"},"items":` + items + `}`,
		"metadata last":  `{"apiVersion":"v1","items":` + items + `,"kind":"ReportList","metadata":{"continue":"more"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var of, broken []string
			page, err := readReports(strings.NewReader(text), func(r *report, err error) {
				of = append(of, r.Namespace)
				if err != nil {
					broken = append(broken, r.Namespace)
				}
			})
			require.NoError(t, err)
			require.Equal(t, "more", page.next)
			require.Equal(t, 2, page.reports)
			require.Equal(t, []string{"a", "b"}, of)
			require.Equal(t, []string{"b"}, broken, "it is counted where it is")
		})
	}
}

func TestWhatIsNoWholePageOfReportsIsRefused(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "cut": `{"items":[{}`, "a list": `[]`, "items of another type": `{"items":{}}`,
		"huge": `{"items":["` + strings.Repeat("x", 3*maxReportBytes) + `"]}`} {
		t.Run(name, func(t *testing.T) {
			_, err := readReports(strings.NewReader(text), func(*report, error) {})
			require.Error(t, err)
		})
	}
}

func TestAPageOfLargeReportsIsNeverHeldWhole(t *testing.T) {
	const count, size = 24, 1 << 20
	one := `{"metadata":{"namespace":"a"},"source":"` + strings.Repeat("x", size) + `"}`
	parts := []io.Reader{strings.NewReader(`{"items":[` + one)}
	for range count - 1 {
		parts = append(parts, strings.NewReader(","+one))
	}
	body := io.MultiReader(append(parts, strings.NewReader("]}"))...)
	before, most := memory.InUse(), 0
	page, err := readReports(body, func(*report, error) { most = max(most, memory.InUse()-before) })
	require.NoError(t, err)
	require.Equal(t, count, page.reports)
	require.Less(t, most, count*size/4)
}

func TestTheNextPageOfReportsIsAsLargeAsTheyAllow(t *testing.T) {
	for name, c := range map[string]struct {
		of   listed
		want int64
	}{
		"small reports": {listed{reports: 20, bytes: 20 * 6000}, mostReports},
		"medium ones":   {listed{reports: 20, bytes: 20 * 128 << 10}, 64},
		"large ones":    {listed{reports: 20, bytes: 20 * 3 << 19}, firstReports},
		"none":          {listed{}, mostReports},
	} {
		require.Equal(t, c.want, nextLimit(mostReports, c.of), name)
	}
	require.EqualValues(t, 2*firstReports, nextLimit(firstReports, listed{reports: 20, bytes: 20 * 600}), "large ones may follow small ones")
}

func TestPagesOfReportsAreAskedForByLabel(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		_, _ = io.WriteString(w, `{"items":[]}`)
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	config := &rest.Config{Host: server.URL}
	pages, err := newReportPages(config, server.Client(), mapper)
	require.NoError(t, err)
	_, err = pages(t.Context(), "team", "", 20, "")
	require.True(t, meta.IsNoMatchError(err), "a kind that does not exist is not asked for")
	mapper.Add(gvk("Report"), meta.RESTScopeNamespace)
	for _, namespace := range []string{"team", ""} {
		page, err := pages(t.Context(), namespace, "", 20, "next")
		require.NoError(t, err)
		require.NoError(t, page.Close())
	}
	query := "reports?continue=next&labelSelector=landwaiter.dev%2Freport&limit=20"
	require.Equal(t, []string{"/apis/openreports.io/v1alpha1/namespaces/team/" + query, "/apis/openreports.io/v1alpha1/" + query}, asked)
}

// The page recovers from a panic in its own goroutine only.
func TestAPanicWhileSomethingIsReadBesideIsAnError(t *testing.T) {
	made := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()
	p := &Person{client: made, reports: func(context.Context, string, string, int64, string) (io.ReadCloser, error) { panic("our own fault") }}
	_, err := p.Status(t.Context(), Scope{All: true}, time.Now())
	require.Error(t, err)
	panics := interceptor.NewClient(made, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		panic("our own fault")
	}})
	err = (&reading{client: panics}).kinds(t.Context(), verify.Cluster, false)
	require.ErrorContains(t, err, "internal error: our own fault")
}
