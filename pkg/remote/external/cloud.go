package external

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// keyOf fetches the public key at a URI of one service.
type keyOf func(ctx context.Context, n network, uri string, as Identity) (crypto.PublicKey, error)

// loginOf fetches a login for a registry host.
type loginOf func(ctx context.Context, n network, host string, as Identity) (login, error)

// cloudAPI has the functions for one cloud. In a build without the cloud, they fail.
type cloudAPI struct {
	key   keyOf
	login loginOf
}

// login is a user and password with their expiry.
type login struct {
	user, password string
	ends           time.Time
}

// lasts returns the login with its expiry, a little early because clocks differ.
func (l login) lasts(until time.Time) login {
	l.ends = until.Add(-loginMargin)
	return l
}

// fetchKMS fetches a public key from a key management service.
func (n network) fetchKMS(ctx context.Context, source Source) ([]byte, error) {
	scheme, _, _ := strings.Cut(source.Address, "://")
	ask, ok := map[string]keyOf{"awskms": aws().key, "azurekms": entra().key, "gcpkms": gcp().key}[scheme]
	if !ok {
		return nil, problemf("the URI of a key must begin with awskms://, azurekms:// or gcpkms://, not %.20q", scheme)
	}
	key, err := ask(ctx, n, source.Address, source.As)
	if err != nil {
		return nil, err
	}
	text, err := pemOf(key)
	return []byte(text), err
}

// fetchRegistry logs in at a registry and returns a .dockerconfigjson.
func (n network) fetchRegistry(ctx context.Context, source Source) (Content, error) {
	logIn, ok := map[string]loginOf{"ECR": aws().login, "ACR": entra().login, "GAR": gcp().login, "GHCR": ghcrLogin}[source.Path]
	if !ok {
		return Content{}, problemf("the identity of a registry must be ECR, ACR, GAR or GHCR, not %.20q", source.Path)
	}
	if !Serves(source.Path, source.Address) {
		return Content{}, problemf("%.253s is not a host of %s, so its credentials are not sent there", source.Address, source.Path)
	}
	got, err := logIn(ctx, n, source.Address, source.As)
	if err != nil {
		return Content{}, err
	}
	auth := base64.StdEncoding.EncodeToString([]byte(got.user + ":" + got.password))
	text, err := json.Marshal(map[string]any{"auths": map[string]any{source.Address: map[string]string{"auth": auth}}})
	return Content{Bytes: text, Ends: got.ends}, err
}

// Serves reports whether a host is a registry of a provider, so that the provider's
// credentials may be sent there.
func Serves(provider, host string) bool {
	switch provider {
	case "ECR":
		_, ok := ecrAPI(host)
		return ok
	case "ACR":
		_, ok := azureFor(host, ".azurecr.io", ".azurecr.cn", ".azurecr.us")
		return ok
	case "GAR":
		if location, ok := strings.CutSuffix(host, "-docker.pkg.dev"); ok {
			return egress.IsLabel(location)
		}
		location, ok := strings.CutSuffix(host, ".gcr.io")
		return host == "gcr.io" || (ok && egress.IsLabel(location))
	case "GHCR":
		return host == ghcrHost
	}
	return false
}

// isRegion reports whether s has the form of an AWS region, such as us-gov-west-1. It
// becomes part of host names.
func isRegion(s string) bool {
	parts := strings.Split(s, "-")
	if !egress.IsLabel(s) || len(parts) < 3 || len(parts) > 4 || len(parts[0]) != 2 || !isNumber(parts[len(parts)-1], 1, 2) {
		return false
	}
	for _, part := range parts[:len(parts)-1] {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz") != "" {
			return false
		}
	}
	return true
}

func isNumber(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, "0123456789") == ""
}

// awsDomain returns the domain of AWS for a region.
func awsDomain(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// ecrAPI returns the region of a registry and reports whether it is one of Elastic
// Container Registry: 123456789012.dkr.ecr.eu-central-1.amazonaws.com, or its endpoint for
// both versions of IP, 123456789012.dkr-ecr.eu-central-1.on.aws.
func ecrAPI(host string) (region string, ok bool) {
	if parts := strings.SplitN(host, ".", 4); len(parts) == 4 && (parts[1] == "dkr-ecr" || parts[1] == "dkr-ecr-fips") {
		domain := "on.aws"
		if strings.HasPrefix(parts[2], "cn-") {
			domain = "on.amazonwebservices.com.cn"
		}
		return parts[2], isNumber(parts[0], 12, 12) && isRegion(parts[2]) && parts[3] == domain
	}
	parts := strings.SplitN(host, ".", 5)
	if len(parts) != 5 || !isNumber(parts[0], 12, 12) || parts[1] != "dkr" || (parts[2] != "ecr" && parts[2] != "ecr-fips") ||
		!isRegion(parts[3]) || parts[4] != awsDomain(parts[3]) {
		return "", false
	}
	return parts[3], true
}

// azure is one of Azure's clouds.
type azure struct {
	authority string // issues tokens
	vault     string // the scope of a token for Key Vault
	exchange  string // the audience of tokens of ServiceAccounts
}

// azureFor returns the cloud whose suffix a host has, in the order public, China, US
// government. One label precedes the suffix.
func azureFor(host string, public, china, government string) (azure, bool) {
	for suffix, cloud := range map[string]azure{
		public:     {"login.microsoftonline.com", "https://vault.azure.net/.default", audienceAzure},
		china:      {"login.partner.microsoftonline.cn", "https://vault.azure.cn/.default", audienceAzure + "China"},
		government: {"login.microsoftonline.us", "https://vault.usgovcloudapi.net/.default", audienceAzure + "USGov"},
	} {
		if name, ok := strings.CutSuffix(host, suffix); ok && egress.IsLabel(name) {
			return cloud, true
		}
	}
	return azure{}, false
}

// parseRSA reads the private key in a field of credentials.
func parseRSA(field, text string) (*rsa.PrivateKey, error) {
	wrong := problem(field + " is not an RSA key of 2048 to 4096 bits in PEM")
	block, _ := pem.Decode([]byte(text))
	if block == nil || len(block.Bytes) > maxPrivateKey {
		return nil, wrong
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok || key.N.BitLen() < 2048 || key.N.BitLen() > 4096 {
		return nil, wrong
	}
	return key, nil
}

// signJWT returns a JWT that is signed with RS256. KeyID may be empty.
func signJWT(key *rsa.PrivateKey, keyID string, claims map[string]any) (string, error) {
	options := (&jose.SignerOptions{}).WithType("JWT")
	if keyID != "" {
		options = options.WithHeader("kid", keyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, options)
	if err != nil {
		return "", problem("the private key cannot sign")
	}
	signed, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		return "", problem("the private key cannot sign")
	}
	return signed, nil
}
