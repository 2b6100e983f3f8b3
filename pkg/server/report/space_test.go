package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

const (
	imageOne = "r.example.com/app:1"
	imageTwo = "r.example.com/app:2"
)

var (
	web  = workload.Ref{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1"}
	cron = workload.Ref{APIVersion: "batch/v1", Kind: "CronJob", Name: "night", UID: "2"}
)

func runs(of workload.Ref, container, image string) workload.Running {
	return workload.Running{Of: of, ContainerType: workload.Container, Container: container, Image: image}
}

// alone is the room of a namespace that shares its account with none.
var alone = room{images: maxImages, running: runningBytes, denied: deniedBytes}

func nobody(string) []workload.Ref { return nil }

// renew refreshes and stores, as the leader does once Events are written.
func (s *space) renew(running []workload.Running, known map[string]finding, now time.Time) []revocation {
	next, revoked := s.refresh(slices.Values(running), findings{images: known}, alone, now)
	s.images = next
	return revoked
}

func (s *space) all() []*openreports.Report {
	return s.render("team-a", nobody, alone)
}

func TestAReportHasARowForEachContainerOfAWorkload(t *testing.T) {
	s := newSpace()
	running := []workload.Running{runs(web, "main", imageOne), runs(web, "side", imageTwo), runs(cron, "main", imageOne), runs(cron, "new", "r.example.com/new:1")}
	s.renew(running, map[string]finding{imageOne: {result: allowed, at: began}, imageTwo: {result: denied, at: began}}, began)
	reports := s.all()
	require.Len(t, reports, 1)
	r := reports[0]
	require.Equal(t, "team-a/landwaiter-running", r.Namespace+"/"+r.Name)
	require.Equal(t, openreports.ReportSummary{Pass: 2, Fail: 1}, r.Summary)
	require.Equal(t, map[string]int{"pass": 1, "fail": 1}, s.counts(), "of distinct images; the new one is not verified yet")
	require.Len(t, r.Results, 3)
	worst := r.Results[0]
	require.EqualValues(t, "fail", worst.Result, "the worst comes first")
	require.Equal(t, "ClusterVerifier release", worst.Policy)
	require.Equal(t, "the key is not trusted", worst.Description)
	require.Equal(t, "team-a Deployment web 1",
		fmt.Sprintf("%s %s %s %s", worst.Subjects[0].Namespace, worst.Subjects[0].Kind, worst.Subjects[0].Name, worst.Subjects[0].UID))
	require.Equal(t, map[string]string{"image": imageTwo, "digest": "sha256:1", "container": "side", "containerType": "container", "remediation": "sign it",
		"command": "cosign sign r.example.com/app:1", "contact": "#team-a", "since": stamp(began),
		"resultID": worst.Properties["resultID"]}, worst.Properties)
	require.Equal(t, began.Unix(), worst.Timestamp.Seconds)
}

func TestNothingIsSaidWhereNothingRuns(t *testing.T) {
	require.Empty(t, newSpace().all())
	require.True(t, newSpace().empty())
}

func TestAVerifiedImageThatDoesNotChangeIsReportedTheSame(t *testing.T) {
	s := newSpace()
	running := []workload.Running{runs(web, "main", imageOne)}
	s.renew(running, map[string]finding{imageOne: {result: allowed, at: began}}, began)
	before := hashOf(s.all()[0])
	s.renew(running, map[string]finding{imageOne: {result: allowed, at: at(30)}}, at(30))
	require.Equal(t, before, hashOf(s.all()[0]))
	s.renew(running, map[string]finding{imageOne: {result: denied, at: at(31)}}, at(31))
	require.NotEqual(t, before, hashOf(s.all()[0]))
}

func TestWhatDoesNotRunAnyMoreLeavesTheReport(t *testing.T) {
	s := newSpace()
	known := map[string]finding{imageOne: {result: allowed, at: began}, imageTwo: {result: allowed, at: began}}
	s.renew([]workload.Running{runs(web, "main", imageOne), runs(cron, "main", imageTwo)}, known, began)
	s.renew([]workload.Running{runs(web, "main", imageOne)}, known, at(1))
	require.Len(t, s.all()[0].Results, 2, "a CronJob comes back")
	s.renew([]workload.Running{runs(web, "main", imageOne)}, known, at(3))
	require.Len(t, s.all()[0].Results, 1)
	require.Equal(t, map[string]int{"pass": 1}, s.counts())
	s.renew(nil, known, at(10))
	require.Empty(t, s.all())
}

func TestARevocationIsAnnouncedUntilItIsStored(t *testing.T) {
	s := newSpace()
	running := []workload.Running{runs(web, "main", imageOne)}
	s.renew(running, map[string]finding{imageOne: {result: allowed, at: began}}, began)
	revoked := map[string]finding{imageOne: {result: denied, at: at(1)}}
	_, first := s.refresh(slices.Values(running), findings{images: revoked}, alone, at(1))
	_, again := s.refresh(slices.Values(running), findings{images: revoked}, alone, at(2))
	require.Len(t, first, 1)
	require.Equal(t, newRevoked("team-a", first[0], web, at(1)).Name, newRevoked("team-a", again[0], web, at(2)).Name, "it is the same Event")
	require.NotEqual(t, newRevoked("team-a", first[0], web, at(1)).Name, newRevoked("team-b", first[0], web, at(1)).Name)
	require.Len(t, s.renew(running, revoked, at(2)), 1)
	require.Empty(t, s.renew(running, revoked, at(3)))
}

// stored returns reports as the API server has them.
func stored(reports []*openreports.Report) []*openreports.Report {
	for _, r := range reports {
		r.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "landwaiter"}}
		r.ResourceVersion = "7"
	}
	return reports
}

func TestTheNextTermGoesOnWhereTheLastOneEnded(t *testing.T) {
	s := newSpace()
	running := []workload.Running{runs(web, "main", imageOne), runs(cron, "main", imageTwo)}
	s.renew(running, map[string]finding{imageOne: {result: allowed, at: began}, imageTwo: {result: denied, at: began}}, began)
	s.fold(noteAt("r0-1", 5, began), began)
	reports := stored(s.all())
	require.Len(t, reports, 2)

	next := newSpace()
	for _, r := range reports {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		read := &openreports.Report{}
		require.NoError(t, json.Unmarshal(text, read))
		next.load(read, at(1), runningBytes)
	}
	require.Empty(t, next.renew(running, nil, at(1)), "nothing has been verified yet")
	for i, r := range next.all() {
		require.Equal(t, hashOf(reports[i]), hashOf(r), "nothing has to be written")
		require.Equal(t, written{version: "7", hash: hashOf(r)}, next.written[r.Name])
	}
	revoked := next.renew(running, map[string]finding{imageOne: {result: denied, at: at(2)}, imageTwo: {result: denied, at: at(2)}}, at(2))
	require.Len(t, revoked, 1)
	require.Equal(t, began, revoked[0].since)
	require.Equal(t, began, next.images[imageTwo].since)
}

func TestAnOlderVerdictOfAnotherReplicaChangesNothing(t *testing.T) {
	s := newSpace()
	s.images[imageOne] = state{result: "fail", since: at(10), policy: "no policy", reason: "revoked"}
	running := []workload.Running{runs(web, "main", imageOne)}
	require.Empty(t, s.renew(running, map[string]finding{imageOne: {result: allowed, at: at(5)}}, at(11)))
	require.Equal(t, "fail", s.images[imageOne].result)
	s.renew(running, map[string]finding{imageOne: {result: allowed, at: at(12)}}, at(12))
	require.Equal(t, "pass", s.images[imageOne].result)
}

func TestOtherWritersAreNotBelieved(t *testing.T) {
	s := newSpace()
	s.renew([]workload.Running{runs(web, "main", imageOne)}, map[string]finding{imageOne: {result: allowed, at: began}}, began)
	for name, change := range map[string]func(r *openreports.Report){
		"another manager": func(r *openreports.Report) {
			r.ManagedFields = append(r.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl-edit"})
		},
		"no manager":          func(r *openreports.Report) { r.ManagedFields = nil },
		"no label":            func(r *openreports.Report) { r.Labels = nil },
		"the other label":     func(r *openreports.Report) { r.Labels[v1beta1.LabelReport] = v1beta1.ReportDenied },
		"another source":      func(r *openreports.Report) { r.Source = "other" },
		"no since":            func(r *openreports.Report) { delete(r.Results[0].Properties, "since") },
		"since the future":    func(r *openreports.Report) { r.Results[0].Properties["since"] = stamp(at(60)) },
		"an unknown result":   func(r *openreports.Report) { r.Results[0].Result = "fine" },
		"an unknown last":     func(r *openreports.Report) { r.Results[0].Properties["lastResult"] = "fine" },
		"a very long image":   func(r *openreports.Report) { r.Results[0].Properties["image"] = strings.Repeat("x", 2*maxImageBytes) },
		"more than anybody's": func(r *openreports.Report) { r.Results = make([]openreports.ReportResult, maxResults+1) },
	} {
		t.Run(name, func(t *testing.T) {
			r := stored(s.all())[0]
			change(r)
			next := newSpace()
			next.load(r, began, runningBytes)
			require.Empty(t, next.images)
			require.Equal(t, "7", next.written[r.Name].version, "it is replaced")
		})
	}
}

func TestALargeReportIsSplitAndThenCut(t *testing.T) {
	s := newSpace()
	known := map[string]finding{}
	long := denied
	long.Verdict.Reason = strings.Repeat("<", 2*maxReasonBytes) // six bytes each in JSON
	var running []workload.Running
	for i := range 1200 {
		image := fmt.Sprintf("r.example.com/app:%d", i)
		known[image] = finding{result: allowed, at: began}
		if i%2 == 0 {
			known[image] = finding{result: long, at: began}
		}
		running = append(running, runs(workload.Ref{Kind: "Pod", Name: strconv.Itoa(i)}, "main", image))
	}
	s.renew(running, known, began)
	reports := s.all()
	require.Greater(t, len(reports), 2)
	names, rows, total := map[string]bool{}, 0, 0
	for _, r := range reports {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.Less(t, len(text), 1<<20, "etcd takes 1.5 MiB")
		require.Equal(t, v1beta1.ReportRunning, v1beta1.ReportAbout(r.Name))
		names[r.Name] = true
		rows, total = rows+len(r.Results), total+len(text)
	}
	require.Len(t, names, len(reports))
	require.Less(t, total, runningBytes+(1<<20))
	last := reports[len(reports)-1].Results
	require.Equal(t, strconv.Itoa(1200-rows+1), last[len(last)-1].Properties[v1beta1.PropertyLeftOut])
	require.EqualValues(t, "fail", reports[0].Results[0].Result)
	require.Equal(t, map[string]int{"pass": 600, "fail": 600}, s.counts(), "the metric counts them all")
}

func TestDenialsAreMatchedToWorkloadsAndSayHow(t *testing.T) {
	s := newSpace()
	changed, fresh := s.fold(noteAt("r0-1", 2, began), began)
	require.True(t, changed && fresh)
	changed, fresh = s.fold(noteAt("r0-1", 3, at(1)), at(1))
	require.True(t, changed)
	require.False(t, fresh)
	changed, _ = s.fold(noteAt("r0-1", 3, at(1)), at(1))
	require.False(t, changed)
	asked := ""
	reports := s.render("team-a", func(image string) []workload.Ref { asked = image; return []workload.Ref{web} }, alone)
	require.Equal(t, imageOne, asked)
	require.Len(t, reports, 1)
	r := reports[0].Results[0]
	require.Equal(t, "landwaiter-denied", reports[0].Name)
	require.Equal(t, "web", r.Subjects[0].Name)
	require.Equal(t,
		map[string]string{"image": imageOne, "count": "3", "first": stamp(began), "last": stamp(at(1)), "traceID": "t", "matched": "by namespace and image",
			"note": "Gatekeeper decides whether that stops a pod", "counters": `{"by":{"r0-1":{"n":3,"t":` + strconv.FormatInt(at(1).Unix(), 10) + `}}}`,
			"resultID": r.Properties["resultID"]}, r.Properties)
	require.Empty(t, s.all()[0].Results[0].Properties["matched"], "nothing has the image")
}

func TestADenialIsReportedForSevenDays(t *testing.T) {
	s := newSpace()
	s.fold(noteAt("r0-1", 2, began), began)
	s.expire(began.Add(keepDenials))
	require.Len(t, s.denials, 1)
	s.expire(began.Add(keepDenials + time.Second))
	require.Empty(t, s.denials)
	require.Empty(t, s.all())
}

func TestDenialsOfManyImagesAreBounded(t *testing.T) {
	s := newSpace()
	for i := range maxDenials + 5 {
		n := noteAt(fmt.Sprintf("r0-%d", i), 1, began.Add(time.Duration(i)*time.Second))
		n.Image = fmt.Sprintf("r.example.com/app:%d", i)
		s.fold(n, at(10))
	}
	require.Len(t, s.denials, maxDenials)
	results := s.all()[0].Results
	require.Equal(t, "r.example.com/app:204", results[0].Properties["image"], "the last one comes first")
	require.Equal(t, "5", results[len(results)-1].Properties["leftOut"])
	again := noteAt("r0-0", 2, began)
	again.Image = "r.example.com/app:0"
	changed, _ := s.fold(again, at(11))
	require.False(t, changed, "an old note does not push out a newer one")
	require.Equal(t, 5, s.leftOut)
}

func TestAResultThatDoesNotFitIsLeftOutAlone(t *testing.T) {
	s := newSpace()
	large := workload.Ref{Kind: "A", Name: strings.Repeat("x", 2*maxResultBytes)} // it sorts first
	s.renew([]workload.Running{runs(large, "main", imageTwo), runs(web, "main", imageTwo)}, map[string]finding{imageTwo: {result: denied, at: began}}, began)
	results := s.all()[0].Results
	require.Len(t, results, 2)
	require.Equal(t, "web", results[0].Subjects[0].Name)
	require.Equal(t, "1", results[1].Properties["leftOut"])
}
