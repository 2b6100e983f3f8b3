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
	CredsStore  json.RawMessage            `json:"credsStore"`
	CredHelpers json.RawMessage            `json:"credHelpers"`
}

type dockerAuth struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// ParseDockerConfig reads a pull secret: the content of .dockerconfigjson, or of the older
// .dockercfg, at most 256 KiB and 256 entries. An invalid entry affects no other: ignored
// lists the first few, with reasons. Credential helpers are ignored because they are
// programs. Neither ignored nor the error contains a credential.
func ParseDockerConfig(text []byte) (logins Logins, ignored []string, err error) {
	if len(text) > maxDockerConfigBytes {
		return nil, nil, fmt.Errorf("the docker config is %d bytes large, the limit is %d", len(text), maxDockerConfigBytes)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors of Windows write it
	var config dockerConfig
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, nil, errors.New("the docker config is not JSON of the form that kubectl create secret docker-registry makes")
	}
	if config.Auths == nil && config.CredsStore == nil && config.CredHelpers == nil {
		// The older form is only the map; it parsed above with every field unknown.
		if err := json.Unmarshal(text, &config.Auths); err != nil {
			return nil, nil, errors.New("the docker config has no auths")
		}
	}
	if len(config.Auths) > maxDockerConfigHosts {
		return nil, nil, fmt.Errorf("the docker config has %d hosts, the limit is %d", len(config.Auths), maxDockerConfigHosts)
	}
	more := 0
	for _, key := range slices.Sorted(maps.Keys(config.Auths)) {
		login, err := readLogin(key, config.Auths[key])
		switch {
		case err == nil:
			logins = append(logins, login)
		case len(ignored) < maxIgnored:
			ignored = append(ignored, fmt.Sprintf("entry %.80q is ignored: %v", shownKey(key), err))
		default:
			more++
		}
	}
	slices.SortStableFunc(logins, byKey)
	if more > 0 {
		ignored = append(ignored, fmt.Sprintf("%d more entries are ignored", more))
	}
	if isSet(config.CredsStore) || isSet(config.CredHelpers) {
		ignored = append(ignored, "credsStore and credHelpers are ignored: a helper is a program that cannot be run here; put the credential "+
			"itself into auths")
	}
	return logins, ignored, nil
}

// isSet reports whether a field of a Docker configuration is set.
func isSet(field json.RawMessage) bool {
	return !slices.Contains([]string{"", `""`, "{}", "null"}, string(field))
}

// shownKey returns a key without a login before its host.
func shownKey(key string) string {
	scheme, rest, found := strings.Cut(key, "://")
	if !found {
		scheme, rest = "", key
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		return strings.TrimPrefix(scheme+"://"+rest[at+1:], "://")
	}
	return key
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

// credential returns the credential of an entry. An empty entry is anonymous.
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
