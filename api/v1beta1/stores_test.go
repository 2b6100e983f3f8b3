package v1beta1_test

// storeRules are those of both twins, and those that a namespaced Store has besides.
func storeRules() []rule {
	const (
		frame    = "{registries: [r.example.com], %s}"
		proxied  = "{registries: [r.example.com], proxy: {%s}}"
		secrets  = "imagePullSecrets: [" + secret + "]"
		from     = "imagePullSecretsFrom: {serviceAccount: " + secret + "}"
		identity = "identity: {provider: ECR, secretRef: " + secret + "}"
	)
	own, cluster := []string{"Store"}, []string{"ClusterStore"}
	list := []rule{{
		kinds: both("Store"), path: "spec", message: atMostOne("identity", "imagePullSecrets", "imagePullSecretsFrom"),
		accepted: in(frame, "", secrets, from, identity, "clientCertificate: {secretRef: "+secret+"}, "+identity),
		rejected: in(frame, secrets+", "+identity, secrets+", "+from, from+", "+identity, secrets+", "+from+", "+identity),
	}, {
		kinds: own, field: "spec.registries", message: "only a ClusterStore can list registries by pattern; list each host",
		accepted: in("{registries: [%s]}", "r.example.com", "'r.example.com:5000', s.example.com"),
		rejected: in("{registries: [%s]}", "'*.example.com'", "r.example.com, '*.dkr.ecr.*.amazonaws.com'"),
	}, {
		kinds: own, field: "spec.proxy", message: "only a ClusterStore can have a proxy",
		accepted: in(frame, secrets), rejected: in(proxied, "", "url: 'http://p:3128'"),
	}, {
		kinds: own, field: "spec.insecurePlainHTTP", message: "only a ClusterStore can access registries without TLS",
		accepted: in(frame, secrets), rejected: in(frame, "insecurePlainHTTP: true", "insecurePlainHTTP: false"),
	}, {
		kinds: own, field: "spec.identity", message: "set secretRef or serviceAccount: only a ClusterStore can log in as Landwaiter's own pod",
		accepted: in(frame, identity), rejected: in("{registries: [r.example.com], identity: {provider: %s}}", "ECR", "ACR", "GAR"),
	}, {
		kinds: cluster, path: "spec", message: "spec.insecurePlainHTTP cannot be used with patterns in spec.registries; list each host",
		accepted: []string{"{registries: ['*.example.com']}", "{registries: ['*.example.com'], insecurePlainHTTP: false}",
			"{registries: [r.example.com], insecurePlainHTTP: true}"},
		rejected: []string{"{registries: ['*.example.com'], insecurePlainHTTP: true}", "{registries: [r.example.com, '*.example.com'], insecurePlainHTTP: true}"},
	}, {
		kinds: cluster, path: "spec", message: "spec.proxy.url cannot be used with spec.insecurePlainHTTP: proxies open tunnels for TLS only",
		accepted: in(frame, "insecurePlainHTTP: true", "insecurePlainHTTP: true, proxy: {}", "insecurePlainHTTP: false, proxy: {url: 'http://p:3128'}"),
		rejected: in("{registries: [r.example.com], insecurePlainHTTP: true, proxy: {%s}}", "url: 'http://p:3128'", "url: 'https://p'"),
	}, {
		kinds: cluster, path: "spec.proxy", message: "spec.proxy.url is missing: secretRef, caBundle and noProxy are for it",
		accepted: in(proxied, "", "additionalHosts: [auth.example.com]", "url: 'http://p:3128'",
			"url: 'https://p/', secretRef: "+secret+", caBundle: {inline: x}, noProxy: [.example.com], additionalHosts: [a.example.com, '*.b.example.com']"),
		rejected: in(proxied, "secretRef: "+secret, "caBundle: {inline: x}", "noProxy: [a]", "additionalHosts: [a.example.com], noProxy: [a]"),
	}, bundleRule(cluster, "spec.proxy.caBundle", "{registries: [r.example.com], proxy: {url: 'https://p', caBundle: {%s}}}")}
	return append(list, bundleRule(both("Store"), "spec.caBundle", "{registries: [r.example.com], caBundle: {%s}}"),
		bundleRule(both("Store"), "spec.additionalCABundles[]", "{registries: [r.example.com], additionalCABundles: [{inline: x}, {%s}]}"))
}

// What a cloud needs of a ServiceAccount.
const (
	role     = "arn:aws:iam::123456789012:role/landwaiter"
	inAWS    = "aws: {roleARN: '" + role + "'}"
	inAzure  = "azure: {tenantID: t, clientID: c}"
	inGoogle = "google: {provider: projects/1/locations/global/workloadIdentityPools/pool/providers/cluster}"
	inRegion = "aws: {roleARN: '" + role + "', region: eu-west-1}"
	asEmail  = "google: {provider: projects/1/locations/global/workloadIdentityPools/pool/providers/cluster, serviceAccount: s@p.iam.gserviceaccount.com}"
)

// account writes a reference to a ServiceAccount with how its tokens are used.
func account(login string) string { return "serviceAccount: {name: s, " + login + "}" }

// identityRules are about who logs in, with a Secret or as a ServiceAccount.
func identityRules() []rule {
	const byName = "secretRef: " + secret
	list := providerRules()
	for path, at := range map[string]struct{ kind, frame string }{
		"spec.identity":   {"Store", "{registries: [r.example.com], identity: {provider: ECR, %s}}"},
		"spec.source.kms": {"TrustStore", "{type: PublicKeys, source: {kms: {uri: 'awskms:///k', %s}}}"},
		"spec.awsSigner":  {"TrustStore", "{type: SigningAuthorities, source: {inline: x}, awsSigner: {%s}}"},
	} {
		for _, kind := range both(at.kind) {
			list = append(list, rule{
				kinds: []string{kind}, path: path, message: atMostOne("secretRef", "serviceAccount"),
				accepted: in(at.frame, byName, account(inAWS), account(inRegion)), rejected: in(at.frame, byName+", "+account(inAWS)),
			}, rule{
				kinds: []string{kind}, path: path + ".serviceAccount", message: exactlyOne("aws", "azure", "google"),
				accepted: in(at.frame, account(inAWS)), rejected: in(at.frame, account(inAWS+", "+inAzure), account(inAWS+", "+inAzure+", "+inGoogle)),
			})
		}
	}
	const kms, signer = "{type: PublicKeys, source: {kms: {%s}}}", "{type: SigningAuthorities, source: {inline: x}, awsSigner: {%s}}"
	list = append(list, rule{
		kinds: []string{"TrustStore"}, field: "spec.source.kms", message: "set secretRef or serviceAccount: only a ClusterTrustStore can read a key as " +
			"Landwaiter's own pod",
		accepted: in(kms, "uri: 'awskms:///k', "+byName), rejected: in(kms, "uri: 'awskms:///k'"),
	}, rule{
		kinds: []string{"TrustStore"}, field: "spec.awsSigner", message: "set secretRef or serviceAccount: only a ClusterTrustStore can ask as Landwaiter's own pod",
		accepted: in(signer, byName), rejected: in(signer, ""),
	}, rule{
		kinds: both("TrustStore"), path: "spec.awsSigner", message: "AWS Signer needs serviceAccount.aws if it has a serviceAccount",
		accepted: in(signer, account(inAWS)), rejected: in(signer, account(inAzure), account(inGoogle)),
	})
	for cloud, login := range map[string]string{"aws": inAWS, "azure": inAzure, "google": inGoogle} {
		service := map[string]string{"aws": "awskms", "azure": "azurekms", "google": "gcpkms"}[cloud]
		of := rule{
			kinds: both("TrustStore"), path: "spec.source.kms", message: "a uri of " + service + " needs serviceAccount." + cloud + " if it has a serviceAccount",
			accepted: in(kms, "uri: '"+service+"://k', "+account(login), "uri: '"+service+"://k', "+byName),
		}
		for _, other := range []string{inAWS, inAzure, inGoogle} {
			if other != login {
				of.rejected = append(of.rejected, in(kms, "uri: '"+service+"://k', "+account(other))...)
			}
		}
		list = append(list, of)
	}
	const vault = "{type: PublicKeys, source: {vault: {address: 'https://v', path: p, %s}}}"
	return append(list, rule{
		kinds: both("TrustStore"), path: "spec.source.vault", message: exactlyOne("tokenSecretKeyRef", "serviceAccount"),
		accepted: in(vault, "tokenSecretKeyRef: "+key, account("role: r"), account("role: r, mount: clusters/eu")),
		rejected: in(vault, "", "tokenSecretKeyRef: "+key+", "+account("role: r")),
	})
}

// providerRules say what each provider of a Store or ClusterStore needs.
func providerRules() []rule {
	const frame = "{registries: [r.example.com], identity: {provider: %s}}"
	row := func(provider, needs string, accepted, rejected []string) rule {
		list := []string{provider + ", secretRef: " + secret}
		for _, login := range accepted {
			list = append(list, provider+", "+account(login))
		}
		var wrong []string
		for _, login := range rejected {
			wrong = append(wrong, provider+", "+account(login))
		}
		return rule{kinds: both("Store"), path: "spec.identity", message: "provider " + provider + " " + needs, accepted: in(frame, list...),
			rejected: in(frame, wrong...)}
	}
	github := row("GHCR", "logs in as a GitHub App and needs secretRef", nil, []string{inAWS, inAzure, inGoogle})
	pod := rule{kinds: []string{"ClusterStore"}, path: "spec.identity", message: github.message, accepted: in(frame, "ECR", "ACR", "GAR"),
		rejected: in(frame, "GHCR")}
	return []rule{
		row("ECR", "needs serviceAccount.aws if it has a serviceAccount", []string{inAWS, inRegion}, []string{inAzure, inGoogle}),
		row("ACR", "needs serviceAccount.azure if it has a serviceAccount", []string{inAzure}, []string{inAWS, inGoogle}),
		row("GAR", "needs serviceAccount.google if it has a serviceAccount", []string{inGoogle, asEmail}, []string{inAWS, inAzure}),
		github, pod,
	}
}

// bundleRule is the rule of a caBundle, which has one shape wherever it is.
func bundleRule(kinds []string, path, frame string) rule {
	return rule{
		kinds: kinds, path: path, message: exactlyOne("inline", "secretKeyRef", "configMapKeyRef"),
		accepted: in(frame, "inline: x", "secretKeyRef: "+key, "configMapKeyRef: "+key),
		rejected: in(frame, "", "inline: x, secretKeyRef: "+key, "inline: x, configMapKeyRef: "+key, "secretKeyRef: "+key+", configMapKeyRef: "+key),
	}
}
