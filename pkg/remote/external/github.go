package external

import (
	"context"
	"net/http"
	"strings"
	"time"
)

const (
	// ghcrHost is the registry of GitHub, and githubHost its API. A resource names neither.
	ghcrHost   = "ghcr.io"
	githubHost = "api.github.com"
	// githubUser is the user name that GitHub expects with the token of an installation.
	githubUser = "x-access-token"
	// githubSkew and githubLifetime keep a request within ten minutes of GitHub's clock, even if
	// ours is ahead.
	githubSkew     = time.Minute
	githubLifetime = 9 * time.Minute
	// maxGitHubID is the length of the number of an App or an installation.
	maxGitHubID = 20
)

// ghcrLogin logs in to GitHub's registry as the installation of a GitHub App, with only the
// permission to read packages. Its token is valid for an hour. Credentials are appID,
// installationID and privateKey.
func ghcrLogin(ctx context.Context, n network, _ string, as Identity) (login, error) {
	values, ambient, err := held(as, "appID", "installationID", "privateKey")
	switch {
	case err != nil:
		return login{}, err
	case ambient:
		return login{}, problem("GHCR needs the credentials of a GitHub App")
	case !isNumber(values["installationID"], 1, maxGitHubID):
		return login{}, problem("installationID of the credentials is not a number")
	}
	key, err := parseRSA("privateKey of the credentials", values["privateKey"])
	if err != nil {
		return login{}, err
	}
	now := time.Now()
	assertion, err := signJWT(key, "",
		map[string]any{"iss": values["appID"], "iat": now.Add(-githubSkew).Unix(), "exp": now.Add(githubLifetime).Unix()})
	if err != nil {
		return login{}, err
	}
	client, err := n.to(ctx, "", githubHost)
	if err != nil {
		return login{}, err
	}
	defer client.Close()
	var answer struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	address := "https://" + githubHost + "/app/installations/" + values["installationID"] + "/access_tokens"
	header := http.Header{"Accept": {"application/vnd.github+json"}, "X-GitHub-Api-Version": {"2022-11-28"}}
	asked := map[string]any{"permissions": map[string]string{"packages": "read"}}
	if err := postJSON(ctx, client, "GitHub", address, assertion, header, asked, &answer); err != nil {
		return login{}, err
	}
	if answer.Token == "" || strings.ContainsAny(answer.Token, "\r\n") {
		return login{}, problem("GitHub gave no token")
	}
	if limit := now.Add(time.Hour); answer.ExpiresAt.IsZero() || answer.ExpiresAt.After(limit) {
		answer.ExpiresAt = limit
	}
	return login{user: githubUser, password: answer.Token}.lasts(answer.ExpiresAt), nil
}
