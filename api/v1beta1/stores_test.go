package v1beta1_test

// Messages of rules that only one of the twins has.
const (
	noPatterns    = "only a ClusterStore can list registries by pattern; list each host"
	plainPatterns = "spec.insecurePlainHTTP cannot be used with patterns in spec.registries; list each host"
	plainProxy    = "spec.proxy.url cannot be used with spec.insecurePlainHTTP: proxies open tunnels for TLS only"
)

func storeRules() []rule {
	const frame = "{registries: [r], %s}"
	var list []rule
	for _, prefix := range []string{"", "Cluster"} {
		secret, key := referenceTo(prefix)
		secrets, from, identity := "imagePullSecrets: ["+secret+"]", "imagePullSecretsFrom: {serviceAccount: "+secret+"}", "identity: {provider: ECR, secretRef: "+secret+"}"
		list = append(list,
			bundleRule(prefix+"Store", "spec.caBundle", "{registries: [r], caBundle: {%s}}", key),
			bundleRule(prefix+"Store", "spec.additionalCABundles[]", "{registries: [r], additionalCABundles: [{inline: x}, {%s}]}", key),
			rule{
				kinds: []string{prefix + "Store"}, path: "spec", message: "spec.identity, spec.imagePullSecrets and spec.imagePullSecretsFrom are three ways to log in; use one",
				accepted: in(frame, "", secrets, from, identity, "clientCertificate: {secretRef: "+secret+"}, "+identity),
				rejected: in(frame, secrets+", "+identity, secrets+", "+from, from+", "+identity, secrets+", "+from+", "+identity),
			})
	}
	return append(list, rule{
		kinds: []string{"Store"}, path: "spec", message: noPatterns,
		accepted: in("{registries: [%s]}", "r", "'r.example.com:5000', s"), rejected: in("{registries: [%s]}", "'*'", "'*.example.com'", "r, '*.dkr.ecr.*.amazonaws.com'"),
	})
}

// clusterStoreRules are about what only a ClusterStore has.
func clusterStoreRules() []rule {
	kinds := []string{"ClusterStore"}
	const proxied = "{registries: [r], proxy: {%s}}"
	_, key := referenceTo("Cluster")
	bundle := bundleRule("ClusterStore", "spec.proxy.caBundle", "{registries: [r], proxy: {url: 'https://p', caBundle: {%s}}}", key)
	return []rule{bundle, {
		kinds: kinds, path: "spec", message: plainPatterns,
		accepted: []string{"{registries: ['*.example.com']}", "{registries: ['*.example.com'], insecurePlainHTTP: false}", "{registries: [r], insecurePlainHTTP: true}"},
		rejected: []string{"{registries: ['*.example.com'], insecurePlainHTTP: true}", "{registries: [r, '*'], insecurePlainHTTP: true}"},
	}, {
		kinds: kinds, path: "spec", message: plainProxy,
		accepted: in("{registries: [r], %s}", "insecurePlainHTTP: true", "insecurePlainHTTP: true, proxy: {}", "insecurePlainHTTP: false, proxy: {url: 'http://p:3128'}"),
		rejected: in("{registries: [r], insecurePlainHTTP: true, proxy: {%s}}", "url: 'http://p:3128'", "url: 'https://p'"),
	}, {
		kinds: kinds, path: "spec.proxy", message: "spec.proxy.url is missing: secretRef, caBundle and noProxy are for it",
		accepted: in(proxied, "", "additionalHosts: [auth.example.com]", "url: 'http://p:3128'", "url: 'https://p/', secretRef: {namespace: ops, name: s}, caBundle: {inline: x}, noProxy: [.example.com], additionalHosts: [a, b]"),
		rejected: in(proxied, "secretRef: {namespace: ops, name: s}", "caBundle: {inline: x}", "noProxy: [a]", "additionalHosts: [a], noProxy: [a]"),
	}}
}

// What a provider needs of a ServiceAccount.
const (
	role     = "arn:aws:iam::123456789012:role/landwaiter"
	inAWS    = "awsRoleARN: '" + role + "'"
	inAzure  = "azureTenantID: t, azureClientID: c"
	inGoogle = "googleProvider: projects/1/locations/global/workloadIdentityPools/pool/providers/cluster"
	anywhere = inAWS + ", awsRegion: eu-west-1, " + inAzure + ", " + inGoogle + ", googleServiceAccount: s@p.iam.gserviceaccount.com"
)

// accountWith writes a reference to a ServiceAccount with how its tokens are used.
func accountWith(reference, login string) string {
	return "serviceAccount: " + reference[:len(reference)-1] + ", " + login + "}"
}

// identityRules are about who logs in, with a Secret or as a ServiceAccount.
func identityRules() []rule {
	var list []rule
	for _, prefix := range []string{"", "Cluster"} {
		list = append(list, providerRules(prefix)...)
		reference, key := referenceTo(prefix)
		secret, account := "secretRef: "+reference, accountWith(reference, inAWS)
		for path, at := range map[string]struct{ kind, frame string }{
			"spec.identity":   {"Store", "{registries: [r], identity: {provider: ECR, %s}}"},
			"spec.source.kms": {"TrustStore", "{type: PublicKeys, source: {kms: {uri: 'awskms:///k', %s}}}"},
			"spec.awsSigner":  {"TrustStore", "{type: SigningAuthorities, source: {inline: x}, awsSigner: {%s}}"},
		} {
			one := rule{
				kinds: []string{prefix + at.kind}, path: path, message: exactlyOne("secretRef", "serviceAccount"),
				accepted: in(at.frame, secret, account, accountWith(reference, anywhere)), rejected: in(at.frame, secret+", "+account),
			}
			if neither := in(at.frame, ""); prefix == "" {
				one.rejected = append(one.rejected, neither...)
			} else { // the identity of the pod
				one.message, one.accepted = atMostOne("secretRef", "serviceAccount"), append(one.accepted, neither...)
			}
			list = append(list, one)
		}
		const vault = "{type: PublicKeys, source: {vault: {address: 'https://v', path: p, %s}}}"
		token, login := "tokenSecretKeyRef: "+key, accountWith(reference, "role: r")
		list = append(list, rule{
			kinds: []string{prefix + "TrustStore"}, path: "spec.source.vault", message: exactlyOne("tokenSecretKeyRef", "serviceAccount"),
			accepted: in(vault, token, login, accountWith(reference, "role: r, mount: clusters/eu")), rejected: in(vault, "", token+", "+login),
		})
	}
	return list
}

// providerRules say what each provider of a Store or ClusterStore needs.
func providerRules(prefix string) []rule {
	const frame = "{registries: [r], identity: {provider: %s}}"
	reference, _ := referenceTo(prefix)
	secret := ", secretRef: " + reference
	as := func(provider string, logins ...string) []string {
		var list []string
		for _, login := range logins {
			list = append(list, provider+", "+accountWith(reference, login))
		}
		return list
	}
	row := func(message string, accepted, rejected []string) rule {
		return rule{kinds: []string{prefix + "Store"}, path: "spec.identity", message: message, accepted: in(frame, accepted...), rejected: in(frame, rejected...)}
	}
	github := row("GHCR logs in as a GitHub App: use secretRef", []string{"GHCR" + secret}, as("GHCR", inAWS, inAzure, inGoogle))
	if prefix != "" { // a pod is no GitHub App
		github.rejected = append(github.rejected, in(frame, "GHCR")...)
	}
	clouds := []rule{
		row("ECR needs serviceAccount.awsRoleARN, the role to assume",
			append(as("ECR", inAWS, inAWS+", awsRegion: eu-west-1"), "ECR"+secret), as("ECR", "awsRegion: eu-west-1", inAzure, inGoogle)),
		row("ACR needs serviceAccount.azureTenantID and azureClientID",
			append(as("ACR", inAzure), "ACR"+secret), as("ACR", "azureTenantID: t", "azureClientID: c", inAWS, inGoogle)),
		row("GAR needs serviceAccount.googleProvider",
			append(as("GAR", inGoogle, inGoogle+", googleServiceAccount: s@p.iam.gserviceaccount.com"), "GAR"+secret), as("GAR", "googleServiceAccount: s@p.iam.gserviceaccount.com", inAWS, inAzure)),
	}
	if prefix != "" { // the identity of the pod
		for i, provider := range []string{"ECR", "ACR", "GAR"} {
			clouds[i].accepted = append(clouds[i].accepted, in(frame, provider)...)
		}
	}
	return append(clouds, github)
}

// bundleRule is the rule of a caBundle, which has one shape wherever it is.
func bundleRule(kind, path, frame, key string) rule {
	return rule{
		kinds: []string{kind}, path: path, message: exactlyOne("inline", "secretKeyRef", "configMapKeyRef"),
		accepted: in(frame, "inline: x", "secretKeyRef: "+key, "configMapKeyRef: "+key),
		rejected: in(frame, "", "inline: x, secretKeyRef: "+key, "inline: x, configMapKeyRef: "+key, "secretKeyRef: "+key+", configMapKeyRef: "+key),
	}
}
