package arch

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// wayOut is the package through which everything goes that resources and evidence ask
// for. Nothing else connects; what an admin names by flag does so in the libraries below.
const wayOut = "pkg/remote/egress"

// connecting lists what connects to servers by itself, by package. http.Client and
// http.Transport are apart: see strayConnections.
func connecting() map[string][]string {
	return map[string][]string{
		"net/http": {"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "ProxyFromEnvironment", "ProxyURL", "NewClientConn"},
		"net": {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DialUnix", "Dialer", "Resolver", "DefaultResolver", "LookupHost", "LookupIP", "LookupAddr",
			"LookupCNAME", "LookupTXT", "LookupSRV", "LookupMX", "LookupNS", "LookupPort"},
		"crypto/tls":        {"Dial", "DialWithDialer", "Dialer", "Client"},
		"net/http/httputil": {"ReverseProxy", "NewSingleHostReverseProxy", "NewClientConn", "NewProxyClientConn"},
		"oras.land/oras-go/v2/registry/remote/auth":                {"DefaultClient"},
		"github.com/sigstore/sigstore-go/pkg/tuf":                  {"DefaultClient", "DefaultOptions"},
		"github.com/sigstore/sigstore-go/pkg/root":                 {"FetchTrustedRoot", "FetchTrustedRootWithOptions", "NewLiveTrustedRoot", "GetTrustedRoot"},
		"github.com/theupdateframework/go-tuf/v2/metadata/updater": {"New"},
	}
}

// connectors lists libraries that connect, and the packages that may use them: the first
// ones through egress, which their tests show, the others to servers that an admin names
// by flag.
func connectors() map[string][]string {
	return map[string][]string{
		"github.com/aws": {"pkg/remote/external"}, "github.com/Azure": {"pkg/remote/external"}, "cloud.google.com": {}, "google.golang.org/api": {},
		"golang.org/x/oauth2":           {"pkg/remote/external"},
		"github.com/theupdateframework": {"pkg/remote/external"}, "github.com/sigstore/sigstore-go/pkg/tuf": {"pkg/remote/external"},
		"github.com/hashicorp/vault":                     {},
		"github.com/sigstore/sigstore/pkg/signature/kms": {}, "github.com/sigstore/sigstore/pkg/tuf": {}, "github.com/sigstore/rekor/pkg/client": {},
		"github.com/google/go-containerregistry/pkg/v1/remote": {}, "oras.land/oras-go/v2/registry/remote/retry": {},
		"oras.land/oras-go/v2/registry/remote": {"pkg/remote/registry"},
		"google.golang.org/grpc":               {}, "golang.org/x/net": {}, "golang.org/x/net/http/httpproxy": {"pkg/remote/egress"},

		// Redis
		"github.com/redis": {"pkg/remote/cache", "cmd/internal/program", "cmd/landwaiter"},
		// OTLP
		"go.opentelemetry.io/otel/exporters": {"pkg/server/tracing"},
		// the API server
		"k8s.io/client-go": {"pkg/resources/watch", "pkg/server/serving", "pkg/server/controller", "pkg/server/enforcement", "pkg/tenancy/operator",
			"pkg/server/report", "pkg/server/warm", "pkg/inspect/live", "pkg/inspect/check", "pkg/inspect/isolation", "pkg/inspect/support", "cmd/landwaiter",
			"cmd/landwaiter-server"},
	}
}

// version is the last part of an import path that is no name.
var version = regexp.MustCompile(`^v[0-9]+$`)

// strayConnections lists what connects to servers outside of the way out: the names of
// connecting, an http.Client without a transport of somebody else, an http.Transport,
// and libraries in packages that may not use them. Aliases of imports are followed.
func (s source) strayConnections() []string {
	if s.pkg == wayOut {
		return nil
	}
	var found []string
	libraries, names := connectors(), connecting()
	local := map[string]string{} // local name of an import: its path
	for _, spec := range s.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		for prefix, allowed := range libraries {
			if below(imported, prefix) && !slices.Contains(allowed, s.pkg) && !narrower(imported, prefix, s.pkg) {
				found = append(found, s.at(spec.Pos(), "import of "+imported))
			}
		}
		alias := path.Base(imported)
		if version.MatchString(alias) {
			alias = path.Base(path.Dir(imported))
		}
		if spec.Name != nil {
			alias = spec.Name.Name
		}
		if alias == "." && names[imported] != nil {
			found = append(found, s.at(spec.Pos(), "dot import of "+imported))
		}
		local[alias] = imported
	}
	named := func(n ast.Node) (pkg, name string) {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := selector.X.(*ast.Ident); ok {
				return local[x.Name], selector.Sel.Name
			}
		}
		return "", ""
	}
	pointed := map[ast.Node]bool{} // types behind a pointer: naming one makes none
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr:
			pointed[n.X] = true
		case *ast.CompositeLit:
			if pkg, name := named(n.Type); pkg == "net/http" && name == "Client" && hasKey(n, "Transport") {
				pointed[n.Type] = true
			}
		case *ast.SelectorExpr:
			pkg, name := named(n)
			own := pkg == "net/http" && (name == "Client" || name == "Transport") && !pointed[n]
			if own || slices.Contains(names[pkg], name) {
				found = append(found, s.at(n.Pos(), fmt.Sprintf("%s.%s", path.Base(pkg), name)))
			}
		}
		return true
	})
	return found
}

// narrower reports whether a longer prefix of connectors allows the import.
func narrower(imported, prefix, pkg string) bool {
	for longer, allowed := range connectors() {
		if len(longer) > len(prefix) && below(imported, longer) && slices.Contains(allowed, pkg) {
			return true
		}
	}
	return false
}

func hasKey(literal *ast.CompositeLit, key string) bool {
	return slices.ContainsFunc(literal.Elts, func(e ast.Expr) bool {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		name, ok := pair.Key.(*ast.Ident)
		return ok && name.Name == key
	})
}

func TestOnlyEgressConnects(t *testing.T) {
	var found []string
	for _, s := range readTree(t).shipped() {
		if inProgram(s.pkg) {
			found = append(found, s.strayConnections()...)
		}
	}
	require.Empty(t, found, "use %s, or add a library of a server that an admin names to connectors", wayOut)
}

func TestRefusesConnectionsPastEgress(t *testing.T) {
	for name, c := range map[string]struct {
		pkg, body string
		count     int
	}{
		"nothing":                      {"pkg/x", "import \"net/http\"\nvar _ http.Handler", 0},
		"a client without a transport": {"pkg/x", "import \"net/http\"\nvar c = http.Client{}", 1},
		"a client by pointer":          {"pkg/x", "import \"net/http\"\nvar c = &http.Client{Timeout: 1}", 1},
		"a new client":                 {"pkg/x", "import \"net/http\"\nvar c = new(http.Client)", 1},
		"a zero client":                {"pkg/x", "import \"net/http\"\nvar c http.Client", 1},
		"a client over a transport":    {"pkg/x", "import \"net/http\"\nfunc f(t http.RoundTripper) any { return &http.Client{Transport: t} }", 0},
		"over the default transport":   {"pkg/x", "import \"net/http\"\nvar c = http.Client{Transport: http.DefaultTransport}", 1},
		"a transport":                  {"pkg/x", "import \"net/http\"\nvar c = &http.Transport{}", 1},
		"a type of a transport":        {"pkg/x", "import \"net/http\"\nvar c map[string]*http.Transport", 0},
		"a transport under an alias":   {"pkg/x", "import web \"net/http\"\nvar c = web.Transport{}", 1},
		"a dot import":                 {"pkg/x", "import . \"net/http\"", 1},
		"the default client":           {"pkg/x", "import \"net/http\"\nvar c = http.DefaultClient", 1},
		"a function":                   {"pkg/x", "import \"net/http\"\nfunc f() { _, _ = http.Get(\"x\") }", 1},
		"a dialer":                     {"pkg/x", "import \"net\"\nvar d = &net.Dialer{}", 1},
		"a dialer by type":             {"pkg/x", "import \"net\"\nfunc f(d *net.Dialer) {}", 1},
		"a lookup":                     {"pkg/x", "import \"net\"\nfunc f() { _, _ = net.LookupHost(\"x\") }", 1},
		"a listener":                   {"pkg/x", "import \"net\"\nvar l net.Listener", 0},
		"TLS":                          {"pkg/x", "import \"crypto/tls\"\nfunc f() { _, _ = tls.Dial(\"tcp\", \"x\", nil) }", 1},
		"in the package":               {wayOut, "import \"net\"\nvar d = &net.Dialer{}", 0},
		"a cloud":                      {"pkg/evidence/cosign", "import _ \"github.com/aws/aws-sdk-go-v2/config\"", 1},
		"a cloud where it belongs":     {"pkg/remote/external", "import _ \"github.com/aws/aws-sdk-go-v2/config\"", 0},
		"gRPC":                         {"pkg/remote/external", "import _ \"google.golang.org/grpc\"", 1},
		"a registry client's own":      {"pkg/remote/registry", "import _ \"oras.land/oras-go/v2/registry/remote/retry\"", 1},
		"the API server":               {"pkg/evidence/cosign", "import _ \"k8s.io/client-go/rest\"", 1},
		"Redis":                        {"pkg/remote/cache", "import _ \"github.com/redis/go-redis/v9\"", 0},
		"a live root":                  {"pkg/formats/trust", "import \"github.com/sigstore/sigstore-go/pkg/root\"\nvar _ = root.NewLiveTrustedRoot", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parseSource(c.pkg+"/x.go", []byte("package x\n\n"+c.body+"\n"))
			require.NoError(t, err)
			require.Len(t, s.strayConnections(), c.count)
		})
	}
}
