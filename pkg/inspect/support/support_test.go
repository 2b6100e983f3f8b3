package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// planted are credentials as they look where somebody put them by mistake.
func planted() map[string]string {
	return map[string]string{
		"a URL":                   "rediss://:hunter2@redis.example.com:6379/0",
		"a URL with a user":       "https://ann:hunter2@proxy.example.com",
		"a private key":           "-----BEGIN EC PRIVATE KEY-----\nhunter2hunter2\n-----END EC PRIVATE KEY-----",
		"a private key, cut off":  "-----BEGIN PRIVATE KEY-----\nhunter2",
		"a header":                "Authorization: Bearer hunter2hunter2",
		"a password":              "password=hunter2",
		"a quoted password":       `{"password": "hunter2"}`,
		"a token":                 "--api-key=hunter2",
		"a JWT":                   "eyJhbGciOiJFUzI1NiJ9.hunter2.hunter2",
		"a key of AWS":            "AKIAHUNTER2HUNTER2XX",
		"a secret key of AWS":     "AWS_SECRET_ACCESS_KEY=hunter2",
		"a token of Vault":        "hvs.hunter2hunter2",
		"a token of GitHub":       "ghp_hunter2hunter2",
		"a token of GitLab":       "glpat-hunter2hunter2",
		"several on several rows": "token: hunter2\npasswd: hunter2",

		"an at sign in a password":         "redis://:p@hunter2@redis.example.com:6379/0",
		"several at signs":                 "https://ann:hunter2@x@hunter2@proxy.example.com/a",
		"a slash in a password":            "rediss://:a/hunter2@redis.example.com:6379",
		"a query sign in a password":       "rediss://ann:a?b#hunter2@redis.example.com",
		"a user alone":                     "https://hunter2@git.example.com/a",
		"a password, short":                "pwd=hunter2",
		"a password, short, with a colon":  "Pwd: hunter2",
		"a password, shorter":              "REDIS_PASS=hunter2",
		"a passphrase":                     "passphrase=hunter2",
		"a flag and its value":             "--password hunter2 --verbose",
		"a flag and a quoted value":        `landwaiter --redis-password "correct hunter2 horse" --verbose`,
		"a flag with one dash":             "-password hunter2",
		"a user and a password for curl":   "curl -u ann:hunter2 https://registry.example.com",
		"a user and a password, long":      "curl --user ann:hunter2 https://registry.example.com",
		"a quoted password with spaces":    `password="correct hunter2 horse"`,
		"in single quotes":                 `password='correct hunter2 horse'`,
		"in JSON with spaces":              `{"password": "correct hunter2 horse", "a": 1}`,
		"a quoted quote":                   `password="a\"b hunter2"`,
		"in YAML with spaces":              "a: b\n  password: correct hunter2 horse\nc: d",
		"in YAML, in a list":               "- password: correct hunter2 horse",
		"in YAML, quoted":                  `password: "correct hunter2 horse"`,
		"a signature of Azure":             "https://a.blob.core.windows.net/c?sv=2024-01-01&sig=hunter2%3D&se=2026-12-01",
		"a signature of AWS":               "https://b.s3.amazonaws.com/k?X-Amz-Date=20261129T000000Z&X-Amz-Signature=hunter2",
		"a session of AWS":                 "https://b.s3.amazonaws.com/k?X-Amz-Security-Token=hunter2&X-Amz-Date=1",
		"a signature of Google":            "https://storage.googleapis.com/b/k?X-Goog-Signature=hunter2",
		"an account of Azure":              "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=hunter2==;EndpointSuffix=core.windows.net",
		"a shared access key of Azure":     "Endpoint=sb://a;SharedAccessKeyName=b;SharedAccessKey=hunter2",
		"a login of Docker":                `{"auths":{"r.example.com":{"auth":"hunter2hunter2"}}}`,
		"an identity of Docker":            `{"identitytoken":"hunter2"}`,
		"a header of Vault":                "X-Vault-Token: hunter2",
		"a header of a registry":           "X-Registry-Auth: hunter2hunter2",
		"a header of GitLab":               "PRIVATE-TOKEN: hunter2",
		"a header of another scheme":       `Authorization: Digest username="ann", response="hunter2"`,
		"a cookie":                         "Cookie: a=b; session=hunter2",
		"a cookie that is set":             "Set-Cookie: session=hunter2; Path=/",
		"a login of npm":                   "//registry.npmjs.org/:_authToken=hunter2",
		"a key of age":                     "AGE-SECRET-KEY-1HUNTER2HUNTER2HUNTER2",
		"a refresh token":                  "grant_type=refresh_token&refresh_token=hunter2&scope=a",
		"a secret of a client, in a query": "client_id=a&client_secret=hunter2%20x",
		"an angle in a password":           "redis://:p<hunter2@redis.example.com:6379",
		"a number and a slash":             "redis://:12/hunter2@redis.example.com",
		"a token of Docker Hub":            "dckr_pat_hunter2hunter2",
		"a private key by its name":        "private_key=hunter2",
		"a signature of CloudFront":        `Get "https://d3.cloudfront.net/sha256/3b?Expires=1577978911&Signature=hunter2~x__&Key-Pair-Id=APKA"`,
		"a signature of another cache":     "Get https://cdn03.quay.io/sha256/2d?X-Amz-Signature=ab&cf_sign=hunter2%2Br&cf_expiry=1",
		"a signature by no name":           `Get "https://production.cloudflare.example.com/registry-v2/data?verify=1714510000-hunter2%3D"`,
		"a signature of Alibaba":           "https://b.oss-cn-hangzhou.aliyuncs.com/b?OSSAccessKeyId=x&Expires=1&Signature=hunter2",
		"a signature of Tencent":           "https://b.cos.ap-x.myqcloud.com/b?q-sign-algorithm=sha1&q-signature=hunter2",
		"a query without a name":           "https://cdn.example.com/blob?hunter2",
		"a query without a name, padded":   "https://cdn.example.com/blob?hunter2hunter2==",
		"a query with a semicolon":         "https://cdn.example.com/blob?a=1;b=hunter2",
		"a query with a question mark":     "https://cdn.example.com/blob?a=1?hunter2",
		"a fragment":                       "https://app.example.com/callback#access=hunter2",
		"a comma in a password":            `"password":"a,hunter2;b&hunter2"`,
	}
}

// leaks reports whether text has anything of what was planted.
func leaks(text string) bool { return strings.Contains(strings.ToLower(text), "hunter2") }

func TestWhatLooksLikeACredentialIsReplaced(t *testing.T) {
	for what, text := range planted() {
		require.True(t, leaks(text), what)
		require.False(t, leaks(redact(text)), "%s: %s", what, redact(text))
		require.False(t, leaks(redact("pull: "+text)), "%s, in a message: %s", what, redact("pull: "+text))
		encoded, err := json.Marshal(text)
		require.NoError(t, err)
		require.False(t, leaks(redact(string(encoded))), "%s, in JSON: %s", what, redact(string(encoded)))
		encoded, err = json.Marshal("a line\n" + text + "\n")
		require.NoError(t, err)
		require.False(t, leaks(redact(string(encoded))), "%s, on a line of its own in JSON: %s", what, redact(string(encoded)))
	}
	for _, text := range []string{
		"Secret team-a/pull cannot be read: landwaiter has no permission to read it",
		"--redis-key-file=/etc/landwaiter/redis-key", "--tls-secret=landwaiter-tls", "--client-ca=secret/gatekeeper-system/gatekeeper-webhook-server-cert",
		"registry.example.com/team-a/app@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"https://landwaiter.landwaiter-system.svc:443/v1/verify", "basic checks passed", "-----BEGIN PUBLIC KEY-----",
		"https://landwaiter.example.com:443/a/registry.example.com/app@sha256:e3b0c442", "pull https://registry.example.com/v2/app/manifests/v1: 404, mail admin@example.com",
		"--redis-password-file /etc/landwaiter/password", "--token-audience=vault", "the token of ServiceAccount team-a/pull has expired", "the password is missing",
		"signature sig-1 of team-a is not valid", "bypass=true", "compass: north",
	} {
		require.Equal(t, text, redact(text))
	}
}

// In an object, a list or a variable, what tells a secret is beside it.
func TestASecretIsKnownByTheNameBesideIt(t *testing.T) {
	for what, text := range map[string]string{
		"a field":                    `{"password": "correct hunter2 horse"}`,
		"a field in capitals":        `{"DB_PASSWORD": "correct hunter2 horse"}`,
		"a field of a field":         `{"auth": {"clientSecret": "correct hunter2 horse"}}`,
		"bytes":                      `{"data": {"token": "aHVudGVyMg hunter2"}}`,
		"an argument after its flag": `{"args": ["serve", "--redis-password", "correct hunter2 horse", "--verbose"]}`,
		"a variable":                 `{"env": [{"name": "REDIS_PASSWORD", "value": "correct hunter2 horse"}]}`,
		"an argument with commas":    `{"args": ["--redis-password=ab,hunter2"]}`,
		"a list of values":           `{"X-Vault-Token": ["hunter2"]}`,
		"a header":                   `{"headers": [{"name": "Authorization", "value": "hunter2"}]}`,
	} {
		var value any
		require.NoError(t, json.Unmarshal([]byte(text), &value), what)
		left, err := json.Marshal(redactAll(value))
		require.NoError(t, err)
		require.False(t, leaks(string(left)), "%s: %s", what, left)
	}
	var value any
	const harmless = `{"args":["--redis-password-file","/etc/landwaiter/password"],"env":[{"name":"GOMEMLIMIT","value":"400MiB"}],"key":"kms",` +
		`"secretName":"landwaiter-tls","tokenAudience":"vault"}`
	require.NoError(t, json.Unmarshal([]byte(harmless), &value))
	left, err := json.Marshal(redactAll(value))
	require.NoError(t, err)
	require.JSONEq(t, harmless, string(left))
}

// installation is one with credentials wherever somebody could have put one.
func installation() (*check.Inventory, []client.Object) {
	all := strings.Join(func() (list []string) {
		for _, text := range planted() {
			list = append(list, text)
		}
		return list
	}(), "\n")
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "landwaiter-system", Name: name, Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": all}}
	}
	deployment := appsv1.Deployment{ObjectMeta: meta("landwaiter")}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "landwaiter", Image: "registry.example.com/landwaiter:0.1.0",
		Args: []string{"serve", "--redis-url=rediss://:hunter2@redis.example.com:6379/0", "--ttl=pass=1h"},
		Env: []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "400MiB"}, {Name: "VAULT_TOKEN", Value: "hunter2"},
			{Name: "HTTPS_PROXY", Value: "https://ann:hunter2@proxy.example.com"}}}}
	store := &v1beta1.Store{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "main", Generation: 2},
		Spec: v1beta1.StoreSpec{Registries: []string{"registry.example.com"}, Proxy: &v1beta1.Proxy{URL: "https://ann:hunter2@proxy.example.com"}}}
	store.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Invalid",
		Message: "cannot connect to https://ann:hunter2@proxy.example.com", ObservedGeneration: 2}}
	inventory := &check.Inventory{Options: check.Options{Namespace: "landwaiter-system"}, Now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC),
		Landwaiters: []appsv1.Deployment{deployment}, Resources: []v1beta1.Object{store},
		Unread: map[check.Source]check.Unread{check.SourceRights: {Missing: "list clusterroles", Why: "you cannot list clusterroles"}}}
	pod := &corev1.Pod{ObjectMeta: meta("landwaiter-0")}
	pod.Spec.Containers = []corev1.Container{{Name: "landwaiter", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8082}}}}
	return inventory, []client.Object{
		pod, &corev1.Pod{ObjectMeta: meta("redis-0")},
		&corev1.Secret{ObjectMeta: meta("landwaiter-tls"), Data: map[string][]byte{"tls.key": []byte("hunter2")}},
		&corev1.ConfigMap{ObjectMeta: meta("settings"), Data: map[string]string{"password": "hunter2"}},
		&corev1.Event{ObjectMeta: meta("one"), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "landwaiter-system", Name: "landwaiter-0"},
			Reason: "Failed", Message: "pull: " + all, LastTimestamp: metav1.NewTime(inventory.Now)},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "two"},
			InvolvedObject: corev1.ObjectReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Store", Namespace: "team-a", Name: "main"}, Reason: "Invalid",
			Message: "ours"},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "three"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "team-a", Name: "web"}, Reason: "Pulled", Message: "somebody else's"},
	}
}

// collected returns the files of an archive. The API server answers requests for its version, and for
// metrics.
func collected(t *testing.T, c client.Reader, inventory *check.Inventory, metrics int) map[string]string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"gitVersion": "v1.37.2"}`)
		case "/api/v1/namespaces/landwaiter-system/pods/http:landwaiter-0:8082/proxy/metrics":
			w.WriteHeader(metrics)
			_, _ = io.WriteString(w, "landwaiter_build_info{revision=\"password=hunter2\"} 1\n")
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	report := check.Report{
		Findings: []resource.Finding{{ID: check.ResourceNotReady, Object: policy.ObjectRef{Kind: "Store", Namespace: "team-a", Name: "main"},
			Message: "it says https://ann:hunter2@proxy.example.com"}}}
	archive, err := Collect(t.Context(), &rest.Config{Host: server.URL}, c, inventory, report, "v0.1.0")
	require.NoError(t, err)
	var written bytes.Buffer
	require.NoError(t, archive.Write(&written))
	plain, err := gzip.NewReader(&written)
	require.NoError(t, err)
	files := map[string]string{}
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		files[strings.TrimPrefix(header.Name, "landwaiter-support/")] = string(text)
	}
}

func TestAnArchiveHasWhatHelpsAndNoSecret(t *testing.T) {
	inventory, objects := installation()
	scheme := clientgoscheme.Scheme
	files := collected(t, fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), inventory, http.StatusOK)
	for name, text := range files {
		require.False(t, leaks(text), "%s:\n%s", name, text)
		if name != "README.txt" && !strings.HasPrefix(name, "metrics/") {
			require.True(t, json.Valid([]byte(text)), "%s:\n%s", name, text)
		}
		if name != "README.txt" {
			require.Contains(t, about, "\n"+strings.SplitAfter(name, "/")[0], "the page names each file")
		}
	}
	for name, parts := range map[string][]string{
		"versions.json":            {`"kubernetes": "v1.37.2"`, `"program": "v0.1.0"`, "registry.example.com/landwaiter:0.1.0"},
		"programs.json":            {"--ttl=pass=1h", "GOMEMLIMIT=400MiB", `"VAULT_TOKEN"`, `"--redis-url=rediss://(redacted)redis.example.com:6379/0"`},
		"conditions.json":          {`"reason": "Invalid"`, `"name": "main"`, "cannot connect to https://(redacted)proxy.example.com"},
		"findings.json":            {`"id": "ResourceNotReady"`},
		"events.json":              {`"message": "ours"`, `"reason": "Failed"`},
		"metrics/landwaiter-0.txt": {"landwaiter_build_info"},
		"missing.json":             {"you cannot list clusterroles"},
		"README.txt":               {"Look through it before you send it"},
	} {
		for _, part := range parts {
			require.Contains(t, files[name], part, name)
		}
	}
	require.NotContains(t, files["events.json"], "somebody else's")
	require.NotContains(t, files["conditions.json"], "registries")
	require.Len(t, files, 8, "no Secret, no ConfigMap and no spec")
}

func TestWhatMayNotBeReadIsListed(t *testing.T) {
	inventory, objects := installation()
	refused := errors.New("you cannot: token=hunter2")
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
	blind := interceptor.NewClient(c,
		interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused }})
	files := collected(t, blind, inventory, http.StatusOK)
	require.JSONEq(t, "[]", files["events.json"])
	for _, part := range []string{"events of all namespaces: you cannot: token=(redacted)", "events of namespace landwaiter-system",
		"pods of namespace landwaiter-system"} {
		require.Contains(t, files["missing.json"], part)
	}
	files = collected(t, c, inventory, http.StatusForbidden)
	require.Contains(t, files["missing.json"], "metrics of pod landwaiter-0: ")
	require.NotContains(t, files, "metrics/landwaiter-0.txt")
}

func TestWhatIsPastTheBoundOfEventsIsListed(t *testing.T) {
	inventory, objects := installation()
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
	many := interceptor.NewClient(c,
		interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var asked client.ListOptions
			asked.ApplyOptions(options)
			if _, ok := list.(*corev1.EventList); ok {
				require.EqualValues(t, maxRead, asked.Limit)
				list.SetContinue("more")
			}
			return nil
		}})
	require.Contains(t, collected(t, many, inventory, http.StatusOK)["missing.json"], "events past the first 20000")
}
