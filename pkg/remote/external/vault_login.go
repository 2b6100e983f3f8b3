package external

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// defaultVaultMount is where Vault's login for Kubernetes is unless a resource says so.
const defaultVaultMount = "kubernetes"

// vaultLogin returns the header of requests to Vault: with the token that is given, or
// with one that Vault gives to a ServiceAccount. leave gives that one back.
func (n network) vaultLogin(ctx context.Context, client *egress.Client, source Source) (header http.Header, leave func(), err error) {
	header, leave = http.Header{"X-Vault-Request": {"true"}}, func() {}
	if as, is := source.As.(account); is {
		if as.federation.VaultNamespace != "" {
			header.Set("X-Vault-Namespace", as.federation.VaultNamespace)
		}
		token, err := n.vaultToken(ctx, client, source, as, header)
		if err != nil {
			return nil, nil, err
		}
		header.Set("X-Vault-Token", token)
		return header, func() { vaultRevoke(ctx, client, source, header) }, nil
	}
	values, ambient, err := held(source.As, "token")
	if err != nil {
		return nil, nil, err
	}
	if ambient {
		return nil, nil, problem("Vault needs a token")
	}
	header.Set("X-Vault-Token", values["token"])
	if values["namespace"] != "" {
		header.Set("X-Vault-Namespace", values["namespace"])
	}
	return header, leave, nil
}

// vaultAudience returns the audience of tokens for the Vault at an address. It names the
// host, so that no other server can use them there.
func vaultAudience(server *url.URL) string {
	return audienceVault + strings.ToLower(strings.TrimSuffix(server.Host, ":443"))
}

// vaultToken logs in with Vault's auth method kubernetes.
func (n network) vaultToken(ctx context.Context, client *egress.Client, source Source, as account, header http.Header) (string, error) {
	server, err := url.Parse(source.Address)
	if err != nil {
		return "", problem("the address is malformed")
	}
	mount := as.federation.VaultMount
	if mount == "" {
		mount = defaultVaultMount
	}
	address, err := vaultPath(server, "auth/"+mount+"/login")
	if err != nil {
		return "", problem("the mount has an empty part, or one of dots")
	}
	if as.federation.VaultRole == "" {
		return "", problem("a login at Vault as a ServiceAccount needs a role")
	}
	token, err := n.token(ctx, as, vaultAudience(server))
	if err != nil {
		return "", err
	}
	var answer struct {
		Auth struct {
			Token string `json:"client_token"`
		} `json:"auth"`
	}
	asked := map[string]string{"role": as.federation.VaultRole, "jwt": token}
	if err := postJSON(ctx, client, "Vault's "+tokens, address.String(), "", header, asked, &answer); err != nil {
		return "", err
	}
	if answer.Auth.Token == "" || strings.ContainsAny(answer.Auth.Token, "\r\n") {
		return "", problem("Vault gave no token")
	}
	return answer.Auth.Token, nil
}

// vaultRevoke gives a token back, so that Vault does not keep one for each fetch. A token
// that stays ends by itself, so failures do not count.
func vaultRevoke(ctx context.Context, client *egress.Client, source Source, header http.Header) {
	server, err := url.Parse(source.Address)
	if err != nil {
		return
	}
	address, err := vaultPath(server, "auth/token/revoke-self")
	if err != nil {
		return
	}
	_ = postJSON(ctx, client, "Vault", address.String(), "", header, struct{}{}, &struct{}{})
}
