package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// reportPages opens one page of the reports of a namespace, or of all, as a list in JSON: reports with a label value
// or, for "", all of ours. The caller closes it. The page is not in memory: one report may have a megabyte.
type reportPages func(ctx context.Context, namespace, about string, limit int64, next string) (io.ReadCloser, error)

// newReportPages returns the pages of an API server.
func newReportPages(config *rest.Config, by *http.Client, mapper meta.RESTMapper) (reportPages, error) {
	version := runtimeschema.GroupVersion{Group: v1beta1.ReportGroup, Version: v1beta1.ReportVersion}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/apis", &version, clientgoscheme.Codecs.WithoutConversion()
	made, err := rest.RESTClientForConfigAndClient(config, by)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, namespace, about string, limit int64, next string) (io.ReadCloser, error) {
		// Someone without permissions must not learn about missing ones if the kind does not exist.
		if _, err := mapper.RESTMapping(version.WithKind(v1beta1.ReportKind).GroupKind(), version.Version); err != nil {
			return nil, err
		}
		selected := v1beta1.LabelReport
		if about != "" {
			selected += "=" + about
		}
		request := made.Get().NamespaceIfScoped(namespace, namespace != "").Resource(v1beta1.ReportResource).
			Param("labelSelector", selected).Param("limit", strconv.FormatInt(limit, 10))
		if next != "" {
			request = request.Param("continue", next)
		}
		return request.Stream(ctx)
	}, nil
}

// listed is the content of a page in addition to its reports.
type listed struct {
	next    string
	reports int
	bytes   int64
}

// readReports calls each for the reports of a page, one after the other, with the decoded part
// and the reason if that is incomplete. It fails for a report of more than maxReportBytes.
func readReports(page io.Reader, each func(*report, error)) (of listed, err error) {
	from := &allowance{from: page}
	decoder := json.NewDecoder(from)
	var raw json.RawMessage
	value := func() ([]byte, error) {
		from.left = maxReportBytes
		err := decoder.Decode(&raw) // into the same memory
		return raw, err
	}
	from.left = maxReportBytes
	if err := opens(decoder, '{'); err != nil {
		return of, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return of, err
		}
		switch key {
		case "items":
			err = items(decoder, &of, value, each)
		case "metadata":
			var text []byte
			if text, err = value(); err == nil {
				var about metav1.ListMeta
				err = utiljson.Unmarshal(text, &about)
				of.next = about.Continue
			}
		default:
			_, err = value()
		}
		if err != nil {
			return of, err
		}
	}
	_, err = decoder.Token()
	of.bytes = from.read
	return of, err
}

// items reads the array of a list.
func items(decoder *json.Decoder, of *listed, value func() ([]byte, error), each func(*report, error)) error {
	if err := opens(decoder, '['); err != nil {
		return err
	}
	for decoder.More() {
		of.reports++
		raw, err := value()
		if err != nil {
			return err
		}
		read := &report{}
		broken := utiljson.Unmarshal(raw, read)
		if broken != nil { // whose it is counts
			read = &report{}
			var about struct {
				metav1.ObjectMeta `json:"metadata"`
			}
			_ = utiljson.Unmarshal(raw, &about) // the API server made it
			read.ObjectMeta = about.ObjectMeta
		}
		each(read, broken)
	}
	_, err := decoder.Token()
	return err
}

// opens reads the start of an object or array.
func opens(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err == nil && token != want {
		err = fmt.Errorf("%v instead of %v", token, want)
	}
	return err
}

// errReportSize is why the rest of a page is not read.
var errReportSize = errors.New("one has more than 4 MiB")

// allowance limits how much one value may take.
type allowance struct {
	from io.Reader
	left int
	read int64
}

// Read reads within the allowance.
func (a *allowance) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, errReportSize
	}
	n, err := a.from.Read(p[:min(len(p), a.left)])
	a.left -= n
	a.read += int64(n)
	return n, err
}

// nextLimit returns the number of reports to request next, by the size of those on the last page.
// A page at most doubles: small reports can precede large ones.
func nextLimit(last int64, of listed) int64 {
	each := of.bytes / int64(max(of.reports, 1))
	return min(max(reportPageBytes/max(each, 1), firstReports), 2*last, mostReports)
}
