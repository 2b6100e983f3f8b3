//go:build aws

package external

import (
	"context"
	"encoding/xml"
	"net/http"
	"net/url"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

const (
	// awsSession begins the name of sessions, which AWS writes into its own logs, and
	// maxAWSSession is how long the name may be.
	awsSession    = "landwaiter-"
	maxAWSSession = 64
	// awsSeconds is how long a session lasts: the least that AWS gives.
	awsSeconds = "900"
)

// awsRole returns a configuration with the credentials of the role that trusts a
// ServiceAccount, by AssumeRoleWithWebIdentity. The request is ours: AWS does not want it
// signed, and the SDK would read the token from a file.
func (n network) awsRole(ctx context.Context, as account, region string) (made awssdk.Config, err error) {
	made.Region = region
	at := as.federation.AWSRegion
	if region == "" {
		made.Region = at
	}
	if at == "" {
		at = region
	}
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
		return made, problemf("%s does not let ServiceAccount %s/%s assume the role (%d): check the role's trust policy", who, as.namespace, as.name, status)
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
