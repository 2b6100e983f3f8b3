package external

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/vault/api"
)

// fetchVault reads the certificates of a PKI mount, or the public keys of a transit
// key: all versions that may still verify, newest first. It uses Vault's API client
// because sigstore's package only reads the newest version, takes addresses and
// tokens from the environment, and has no deadline.
func fetchVault(ctx context.Context, source Source) ([]byte, error) {
	given, err := source.credentials()
	if err != nil {
		return nil, err
	}
	if given["token"] == "" {
		return nil, errors.New("there is no token for Vault")
	}
	client, closeIdle, err := vaultClient(source)
	if err != nil {
		return nil, err
	}
	defer closeIdle()
	client.SetHeaders(http.Header{api.RequestHeaderName: {"true"}}) // drops VAULT_HEADERS and VAULT_NAMESPACE
	client.SetToken(given["token"])
	if given["namespace"] != "" {
		client.SetNamespace(given["namespace"])
	}
	secret, err := client.Logical().ReadWithContext(ctx, source.Path)
	switch {
	case err != nil:
		return nil, vaultError(err)
	case secret == nil || len(secret.Data) == 0:
		return nil, fmt.Errorf("there is nothing at %s", source.Path)
	case source.Kind == VaultCertificates:
		return vaultCertificates(secret.Data)
	}
	return vaultKeys(secret.Data)
}

// vaultClient makes a client that takes nothing from the environment, follows no
// redirect and does not retry, because the Fetcher does.
func vaultClient(source Source) (*api.Client, func(), error) {
	roots, err := rootsWith(source.Authority)
	if err != nil {
		return nil, nil, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, ResponseHeaderTimeout: fetchTimeout,
		MaxResponseHeaderBytes: maxReply}
	client, err := api.NewClient(&api.Config{
		Address: source.Address, MaxRetries: 0, Timeout: fetchTimeout, DisableRedirects: true,
		HttpClient: &http.Client{Transport: limited{transport}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make a client of Vault: %w", err)
	}
	if err := client.SetAddress(source.Address); err != nil { // the environment must not name another
		return nil, nil, fmt.Errorf("use address %s: %w", source.Address, err)
	}
	return client, transport.CloseIdleConnections, nil
}

// rootsWith returns the system's CAs and those of a PEM bundle. It returns nil,
// which means the system's, if there is no bundle.
func rootsWith(authority string) (*x509.CertPool, error) {
	if authority == "" {
		return nil, nil //nolint:nilnil // crypto/tls reads it so
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM([]byte(authority)) {
		return nil, errors.New("the CA bundle has no certificate")
	}
	return pool, nil
}

// vaultError reduces a server's answer to its status: the text comes from outside.
func vaultError(err error) error {
	var refused *api.ResponseError
	if errors.As(err, &refused) {
		switch refused.StatusCode {
		case http.StatusForbidden:
			return errors.New("Vault refuses the token (403): it needs the capability read on the path") //nolint:staticcheck // a name
		case http.StatusNotFound:
			return errors.New("there is nothing at that path (404)")
		}
		return fmt.Errorf("Vault answered with status %d", refused.StatusCode) //nolint:staticcheck // a name
	}
	return err
}

// vaultKeys reads an answer of the transit engine ("Read key"), which holds the
// public key of each version if the key is asymmetric.
func vaultKeys(data map[string]any) ([]byte, error) {
	versions, ok := data["keys"].(map[string]any)
	if !ok || len(versions) == 0 {
		return nil, errors.New("it is not a key of the transit engine")
	}
	oldest := 0
	if least, ok := data["min_decryption_version"].(json.Number); ok {
		oldest, _ = strconv.Atoi(least.String()) // 0 if it is none: all count
	}
	numbers := map[int]string{}
	for name := range versions {
		number, err := strconv.Atoi(name)
		if err != nil {
			return nil, errors.New("a version of the key is not a number")
		}
		numbers[number] = name
	}
	var all strings.Builder
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(numbers))) {
		if number < oldest {
			break
		}
		version, ok := versions[numbers[number]].(map[string]any)
		if !ok {
			return nil, errors.New("the key is symmetric: it has no public part")
		}
		text, err := vaultKey(version)
		if err != nil {
			return nil, err
		}
		all.WriteString(text)
	}
	return []byte(all.String()), nil
}

// vaultKey returns one version as PEM. Vault sends Ed25519 keys as base64 of the raw
// key.
func vaultKey(version map[string]any) (string, error) {
	text, ok := version["public_key"].(string)
	if !ok || text == "" {
		return "", errors.New("the key has no public part")
	}
	if version["name"] != "ed25519" {
		return strings.TrimSpace(text) + "\n", nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return "", errors.New("the Ed25519 key is malformed")
	}
	return pemOf(ed25519.PublicKey(raw))
}

func pemOf(key any) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("encode the public key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}

// vaultCertificates reads an answer of the PKI engine ("Read certificate").
func vaultCertificates(data map[string]any) ([]byte, error) {
	for _, name := range []string{"ca_chain", "certificate"} {
		switch found := data[name].(type) {
		case string:
			if found != "" {
				return []byte(found), nil
			}
		case []any:
			var all strings.Builder
			for _, one := range found {
				text, ok := one.(string)
				if !ok {
					return nil, errors.New("the chain is not a list of certificates")
				}
				all.WriteString(strings.TrimSpace(text) + "\n")
			}
			if all.Len() > 0 {
				return []byte(all.String()), nil
			}
		}
	}
	return nil, errors.New("it is not a certificate of the PKI engine")
}
