//go:build aws

package external

import (
	"cmp"
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

func aws() cloudAPI { return cloudAPI{key: awsKey, login: ecrLogin} }

// awsKey reads a key of AWS KMS: awskms://[ENDPOINT]/KEY, where KEY is an identifier, an
// alias, or an ARN of either, which also names the region. Credentials are accessKeyID,
// secretAccessKey, sessionToken (optional) and region.
func awsKey(ctx context.Context, n network, uri string, as Identity) (crypto.PublicKey, error) {
	endpoint, id, _ := strings.Cut(strings.TrimPrefix(uri, "awskms://"), "/")
	for part := range strings.SplitSeq(id, "/") {
		if !isSegment(part) {
			return nil, problem("the URI of an AWS key must have the form awskms:///ID, awskms:///alias/NAME or awskms:///ARN")
		}
	}
	region := ""
	if arn := strings.Split(id, ":"); len(arn) == 6 && arn[0] == "arn" && arn[2] == "kms" {
		region = arn[3]
	}
	own, err := n.awsConfig(ctx, as, region)
	if err != nil {
		return nil, err
	}
	endpoint = cmp.Or(endpoint, "kms."+own.Region+"."+awsDomain(own.Region))
	client, err := n.to(ctx, "", endpoint)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	own.HTTPClient, own.BaseEndpoint = client.HTTP(), awssdk.String("https://"+endpoint)
	answer, err := kms.NewFromConfig(own).GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: awssdk.String(id)})
	if err != nil {
		return nil, awsError("AWS KMS", err)
	}
	if answer.KeyUsage != types.KeyUsageTypeSignVerify {
		return nil, problem("the AWS key is not for signatures: its usage must be SIGN_VERIFY")
	}
	key, err := x509.ParsePKIXPublicKey(answer.PublicKey)
	if err != nil {
		return nil, problem("the AWS key is malformed")
	}
	return key, nil
}

// awsConfig returns a configuration with the given credentials, or those of a role, ignoring
// the environment. For the pod, it uses the environment. The region is the one of the
// credentials unless it is given.
func (n network) awsConfig(ctx context.Context, as Identity, region string) (made awssdk.Config, err error) {
	if as, is := as.(account); is {
		made, err = n.awsRole(ctx, as, region)
		made.Retryer = noRetries
		return made, err
	}
	values, ambient, err := held(as, "accessKeyID", "secretAccessKey")
	if err != nil {
		return made, err
	}
	if ambient {
		client, err := n.awsPodClient()
		if err != nil {
			return made, err
		}
		if made, err = config.LoadDefaultConfig(ctx, config.WithHTTPClient(client)); err != nil {
			return made, problem("the AWS configuration of the pod cannot be read")
		}
		made = awssdk.Config{Region: made.Region, Credentials: made.Credentials}
	} else {
		made.Region = values["region"]
		made.Credentials = credentials.NewStaticCredentialsProvider(values["accessKeyID"], values["secretAccessKey"], values["sessionToken"])
	}
	made.Region = cmp.Or(region, made.Region)
	if !isRegion(made.Region) {
		return made, problemf("%.64q is not a region of AWS; the credentials need one in region", made.Region)
	}
	made.Retryer = noRetries
	return made, nil
}

// noRetries is for all requests: the Fetcher retries.
func noRetries() awssdk.Retryer { return awssdk.NopRetryer{} }

// awsPodClient returns the client with which the SDK finds the identity of this process. It
// has the SDK's type, because AWS_CA_BUNDLE works with no other, and our connections.
func (n network) awsPodClient() (*awshttp.BuildableClient, error) {
	ours, err := egress.NewTransport(egress.Pool{Guard: egress.NewGuard().With(n.endpoints), Reach: egress.UnsafeMetadata})
	if err != nil {
		return nil, err
	}
	return awshttp.NewBuildableClient().WithTimeout(fetchTimeout).WithTransportOptions(func(t *http.Transport) {
		t.Proxy, t.DialContext, t.Protocols, t.MaxResponseHeaderBytes = nil, ours.DialContext, ours.Protocols, ours.MaxResponseHeaderBytes
		t.DisableCompression, t.DisableKeepAlives = true, true // so that no connection is left
	}), nil
}

// awsError explains in our own words why AWS refused: of its error only a known code is used.
func awsError(who string, err error) error {
	var network *egress.Error
	if errors.As(err, &network) {
		return fmt.Errorf("ask %s: %w", who, network)
	}
	var refused smithy.APIError
	if errors.As(err, &refused) {
		switch refused.ErrorCode() {
		case "AccessDeniedException":
			return problemf("%s refuses access: the identity cannot read this", who)
		case "NotFoundException":
			return problemf("%s has no such key", who)
		case "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch":
			return problemf("%s refuses the credentials: they are wrong", who)
		case "ExpiredTokenException", "ExpiredToken":
			return problemf("%s refuses the credentials: they have expired", who)
		}
	}
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		return answered(who, response.HTTPStatusCode())
	}
	return problemf("%s cannot be asked as this identity", who)
}

// ecrLogin gets a token of Elastic Container Registry, which is valid for 12 hours.
func ecrLogin(ctx context.Context, n network, host string, as Identity) (login, error) {
	region, ok := ecrAPI(host)
	if !ok {
		return login{}, problemf("%.253s is not a host of ECR", host)
	}
	own, err := n.awsConfig(ctx, as, region)
	if err != nil {
		return login{}, err
	}
	endpoint := "api.ecr." + region + "." + awsDomain(region)
	client, err := n.to(ctx, "", endpoint)
	if err != nil {
		return login{}, err
	}
	defer client.Close()
	own.HTTPClient, own.BaseEndpoint = client.HTTP(), awssdk.String("https://"+endpoint)
	now := time.Now()
	answer, err := ecr.NewFromConfig(own).GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
	if err != nil {
		return login{}, awsError("ECR", err)
	}
	if len(answer.AuthorizationData) == 0 {
		return login{}, problem("ECR gave no token")
	}
	text, err := base64.StdEncoding.DecodeString(awssdk.ToString(answer.AuthorizationData[0].AuthorizationToken))
	if err != nil {
		return login{}, problem("the ECR token is malformed")
	}
	user, password, ok := strings.Cut(string(text), ":")
	if !ok {
		return login{}, problem("the ECR token is malformed")
	}
	ends := now.Add(ecrLifetime)
	if said := answer.AuthorizationData[0].ExpiresAt; said != nil && said.Before(ends) {
		ends = *said
	}
	return login{user: user, password: password}.lasts(ends), nil
}

const (
	// awsSession is the prefix of session names, which AWS writes into its own logs, and
	// maxAWSSession the length of a name.
	awsSession    = "landwaiter-"
	maxAWSSession = 64
	// awsSeconds is how long a session lasts: AWS's minimum.
	awsSeconds = "900"
)

// awsRole returns a configuration with the credentials of the role that trusts a
// ServiceAccount, by AssumeRoleWithWebIdentity. We send the request ourselves: AWS wants it
// unsigned, and the SDK would read the token from a file.
func (n network) awsRole(ctx context.Context, as account, region string) (made awssdk.Config, err error) {
	made.Region = cmp.Or(region, as.federation.AWSRegion)
	at := cmp.Or(as.federation.AWSRegion, region)
	if !isRegion(made.Region) || !isRegion(at) {
		return made, problemf("%.64q is not a region of AWS; set serviceAccount.aws.region", at)
	}
	if as.federation.AWSRoleARN == "" {
		return made, problem("serviceAccount.aws.roleARN is missing: the role to assume")
	}
	token, err := n.token(ctx, as, audienceAWS)
	if err != nil {
		return made, err
	}
	session := awsSession + as.namespace
	form := url.Values{"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {as.federation.AWSRoleARN},
		"RoleSessionName": {session[:min(len(session), maxAWSSession)]}, "WebIdentityToken": {token}, "DurationSeconds": {awsSeconds}}
	host := "sts." + at + "." + awsDomain(at)
	client, err := n.to(ctx, "", host)
	if err != nil {
		return made, err
	}
	defer client.Close()
	r, err := newForm(ctx, "https://"+host+"/", form)
	if err != nil {
		return made, err
	}
	status, body, err := client.Read(r)
	const who = "AWS's " + tokens
	if status == http.StatusForbidden || status == http.StatusBadRequest {
		return made, problemf("%s does not let ServiceAccount %s/%s assume the role (%d): check the role's trust policy", who, as.namespace,
			as.name, status)
	}
	if err := refused(who, status, err); err != nil {
		return made, err
	}
	var answer struct {
		Key    string `xml:"AssumeRoleWithWebIdentityResult>Credentials>AccessKeyId"`
		Secret string `xml:"AssumeRoleWithWebIdentityResult>Credentials>SecretAccessKey"`
		Token  string `xml:"AssumeRoleWithWebIdentityResult>Credentials>SessionToken"`
	}
	if xml.Unmarshal(body, &answer) != nil || answer.Key == "" || answer.Secret == "" || answer.Token == "" {
		return made, problemf("the answer of %s is malformed", who)
	}
	made.Credentials = credentials.NewStaticCredentialsProvider(answer.Key, answer.Secret, answer.Token)
	return made, nil
}

// KnowsAWS reports whether this build can ask AWS.
func KnowsAWS() bool { return true }

// notationPlatform is the platform of all signatures of container images.
const notationPlatform = "Notation-OCI-SHA384-ECDSA"

// askAWSSigner asks for the revocation status of one signature (GetRevocationStatus of the
// AWS Signer API, 2017-08-25). The host follows from the region.
func (n network) askAWSSigner(ctx context.Context, q awsQuestion) ([]string, error) {
	if !isRegion(q.region) {
		return nil, problemf("%.64q is not a region of AWS", q.region)
	}
	own, err := n.awsConfig(ctx, q.as, q.region)
	if err != nil {
		return nil, err
	}
	host := "data-signer." + q.region + "." + awsDomain(q.region)
	client, err := n.to(ctx, "", host)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	query := url.Values{"certificateHashes": strings.Split(q.certificates, ","), "jobArn": {q.job}, "platformId": {notationPlatform},
		"profileVersionArn": {q.profileVersion}, "signatureTimestamp": {q.signedAt}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/revocations?"+query.Encode(), nil)
	if err != nil {
		return nil, problem("the address is malformed")
	}
	held, err := own.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, awsError("AWS", err)
	}
	empty := sha256.Sum256(nil)
	if err := v4.NewSigner().SignHTTP(ctx, held, r, hex.EncodeToString(empty[:]), "signer", q.region, time.Now()); err != nil {
		return nil, problem("the request to AWS Signer cannot be signed")
	}
	status, body, err := client.Read(r)
	var answer struct {
		RevokedEntities []string `json:"revokedEntities"`
	}
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		return nil, problemf("AWS Signer refuses the credentials, or they lack the permission signer:GetRevocationStatus (%d)", status)
	case status != http.StatusOK:
		return nil, answered("AWS Signer", status)
	case json.Unmarshal(body, &answer) != nil || !strings.HasPrefix(strings.TrimSpace(string(body)), "{"):
		return nil, problem("the answer of AWS Signer is malformed")
	}
	return answer.RevokedEntities, nil
}
