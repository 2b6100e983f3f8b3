package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// dockerConfig is the part of Docker's config.json that pull secrets use.
type dockerConfig struct {
	Auths       map[string]json.RawMessage `json:"auths"`
	CredsStore  string                     `json:"credsStore"`
	CredHelpers map[string]string          `json:"credHelpers"`
}

type dockerAuth struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// ParseDockerConfig reads a pull secret: the content of .dockerconfigjson, or of the
// older .dockercfg, at most 256 KiB and 256 entries, 32 of them with wildcards. An entry that
// cannot be read affects no other: ignored says which, and why. Credential helpers are
// ignored because they are programs. Neither ignored nor the error contains a credential.
func ParseDockerConfig(text []byte) (logins Logins, ignored []string, err error) {
	if len(text) > maxDockerConfigBytes {
		return nil, nil, fmt.Errorf("the docker config is %d bytes large, the limit is %d", len(text), maxDockerConfigBytes)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors of Windows begin with it
	var config dockerConfig
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, nil, errors.New("the docker config is not JSON of the form that kubectl create secret docker-registry makes")
	}
	if config.Auths == nil && config.CredsStore == "" && config.CredHelpers == nil {
		// The older form is the map alone; it parsed above with every field unknown.
		if err := json.Unmarshal(text, &config.Auths); err != nil {
			return nil, nil, errors.New("the docker config has no auths")
		}
	}
	if len(config.Auths) > maxDockerConfigHosts {
		return nil, nil, fmt.Errorf("the docker config has %d hosts, the limit is %d", len(config.Auths), maxDockerConfigHosts)
	}
	wild := 0
	for _, key := range slices.Sorted(maps.Keys(config.Auths)) {
		login, err := readLogin(key, config.Auths[key])
		if err == nil && login.wild() {
			if wild++; wild > maxWildLogins {
				err = fmt.Errorf("the docker config has more than %d entries with wildcards", maxWildLogins)
			}
		}
		if err != nil {
			ignored = append(ignored, fmt.Sprintf("entry %.80q is ignored: %v", key, err))
			continue
		}
		logins = append(logins, login)
	}
	if config.CredsStore != "" || len(config.CredHelpers) > 0 {
		ignored = append(ignored, "credsStore and credHelpers are ignored: a helper is a program that cannot be run here; put the credential itself into auths")
	}
	return Logins{}.Add(logins), ignored, nil
}

func readLogin(key string, text json.RawMessage) (Login, error) {
	var entry dockerAuth
	if err := json.Unmarshal(text, &entry); err != nil {
		return Login{}, errors.New("it is not an object with auth, or username and password")
	}
	credential, err := entry.credential()
	if err != nil {
		return Login{}, err
	}
	return NewLogin(key, credential)
}

// credential returns the credential of an entry. That of an empty one is anonymous.
func (a dockerAuth) credential() (Credential, error) {
	c := Credential{Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken}
	if a.Auth == "" {
		return c, nil
	}
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(a.Auth), "="))
	if err != nil {
		return Credential{}, errors.New("auth is not base64")
	}
	username, password, found := strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
	if !found {
		return Credential{}, errors.New("auth is not a user name and a password with a colon between them")
	}
	c.Username, c.Password = username, password
	return c, nil
}
