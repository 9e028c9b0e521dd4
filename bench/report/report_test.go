package report

import (
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/articles/tiers"
)

// small is a report that takes seconds.
func small() Options { return Options{RPS: 1000, Seeds: 1, N: 300, Capacity: 50} }

// slow skips a test that draws many pictures with the race detector, where that takes minutes.
// TestAnInterruptedReportKeepsWhatIsDrawn is the one of all workers that it watches.
func slow(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("slow with the race detector")
	}
}

// html is the page of the report in a directory.
func html(t *testing.T, dir string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(dir, FileName))
	require.NoError(t, err)
	return string(page)
}

// sound checks an SVG: it is XML, small, and refers to nothing. It returns its texts.
func sound(t *testing.T, name string, svg []byte) string {
	t.Helper()
	require.Less(t, len(svg), 200_000, name)
	var (
		texts strings.Builder
		width float64
	)
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts.String()
		}
		require.NoError(t, err, name)
		switch token := token.(type) {
		case xml.CharData:
			texts.Write(token)
		case xml.StartElement:
			place := map[string]float64{}
			for _, a := range token.Attr {
				require.NotContains(t, a.Name.Local, "href", name)
				require.NotContains(t, a.Value, "url(", name)
				place[a.Name.Local], _ = strconv.ParseFloat(strings.TrimSuffix(a.Value, "pt"), 64)
			}
			if token.Name.Local == "svg" {
				width = place["width"]
			}
			require.LessOrEqual(t, place["x"]+place["textLength"], width, "%s: a text runs out of the picture", name)
		}
	}
}

func TestAWholeReportHasEveryPictureAndNeedsNothingElse(t *testing.T) {
	slow(t)
	dir, o, figures := t.TempDir(), small(), 0
	o.Each = func(done, many int) {
		figures++
		require.Equal(t, figures, done)
		require.LessOrEqual(t, done, many)
	}
	require.NoError(t, Write(context.Background(), dir, o))
	require.Equal(t, 5+17+6+1+5+1+1+2, figures, "herds, scenarios, more of them, Little's law, tiers, letters, contention, storm")

	svgs, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	require.NoError(t, err)
	require.Len(t, svgs, 2*5+2*(17+6)+1+5+1+1+3)
	texts := map[string]string{}
	for _, file := range svgs {
		svg, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[filepath.Base(file)] = sound(t, file, svg)
	}
	for _, s := range slices.Concat(queueing.Scenarios(), queueing.MoreScenarios()) {
		for _, y := range s.Strategies {
			require.Contains(t, texts["queueing_"+fileName(s.Name)+".svg"], y.Name)
			require.Contains(t, texts["queueing_tries_"+fileName(s.Name)+".svg"], y.Name)
		}
	}
	for _, s := range tiers.Scenarios() {
		for _, y := range s.Strategies {
			require.Contains(t, texts["tiers_"+fileName(s.Name)+".svg"], y.Name)
		}
	}
	for _, name := range compared {
		for _, file := range []string{"herd_restart_dials.svg", "herd_outage_up.svg"} {
			require.Contains(t, texts[file], name)
		}
	}
	for _, name := range []string{"none", "exponential", "equal", "full", "decorrelated"} {
		require.Contains(t, texts["aws.svg"], name)
	}
	for _, name := range []string{"simple", "described", "coded"} {
		require.Contains(t, texts["storm_recovery.svg"], name)
		require.Contains(t, texts["storm_border.svg"], name)
	}

	page := html(t, dir)
	selfContained(t, page, len(svgs))
	require.NotContains(t, page, "<td>never<")
	require.Contains(t, page, "<td>not within 10m0s</td>", "a storm")
	require.NotContains(t, page, "interrupted")
	require.NotContains(t, page, "NaN")
	for _, id := range ChapterIDs() {
		require.Contains(t, page, `<h2 id="`+id+`">`)
	}
}

var (
	addresses = regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	elsewhere = regexp.MustCompile(`(?i)https?:|url\(|@import|<script|<link|<iframe`)
)

// selfContained checks that a page refers to its own places and has its pictures in it.
func selfContained(t *testing.T, page string, pictures int) {
	t.Helper()
	require.Empty(t, elsewhere.FindString(page))
	seen := 0
	for _, a := range addresses.FindAllStringSubmatch(page, -1) {
		if place, ok := strings.CutPrefix(a[1], "#"); ok {
			require.Contains(t, page, `id="`+place+`"`)
			continue
		}
		data, ok := strings.CutPrefix(a[1], "data:image/svg&#43;xml;base64,")
		if !ok {
			data, ok = strings.CutPrefix(a[1], "data:image/svg+xml;base64,")
		}
		require.True(t, ok, "%.60s", a[1])
		svg, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(data, "&#43;", "+"))
		require.NoError(t, err)
		sound(t, "a picture of the page", svg)
		seen++
	}
	require.Equal(t, pictures, seen)
}

func TestTheSameOptionsGiveTheSamePage(t *testing.T) {
	slow(t)
	o, a, b := small(), t.TempDir(), t.TempDir()
	o.Only = []string{"letters", "herd"}
	require.NoError(t, Write(context.Background(), a, o))
	require.NoError(t, Write(context.Background(), b, o))
	require.Equal(t, html(t, a), html(t, b))
}

func TestOnlyWhatIsWantedIsDrawn(t *testing.T) {
	dir, o := t.TempDir(), small()
	o.Only = []string{"letters"}
	require.NoError(t, Write(context.Background(), dir, o))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2, "the page and an SVG: nothing is left of what was tried first")
	require.NotContains(t, html(t, dir), `id="aws"`)
}

func TestAnInterruptedReportKeepsWhatIsDrawn(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	dir, o := t.TempDir(), small()
	o.Only = []string{"letters", "aws"} // of which one is drawn at once, and the other is not
	drawn := 0
	o.Each = func(int, int) { drawn++; cancel(enough) }
	require.ErrorIs(t, Write(ctx, dir, o), enough)
	require.Equal(t, 1, drawn)
	page := html(t, dir)
	require.Contains(t, page, "The report was interrupted: 1 of its figures is not drawn.")
	require.Contains(t, page, "The report was interrupted: 1 figure of this chapter is not drawn.")
	require.Equal(t, 1, strings.Count(page, "<article>"))
	files, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	require.NoError(t, err)
	require.Equal(t, strings.Count(page, "<img"), len(files), "no file that the page does not show")
}

func TestAReportThatWasInterruptedBeforeItBeganSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	require.ErrorIs(t, Write(ctx, dir, small()), context.Canceled)
	require.Contains(t, html(t, dir), "The report was interrupted: 38 of its figures are not drawn.")
}

func TestADirectoryThatCannotBeWrittenIsSaidAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	o := small()
	o.Each = func(int, int) { t.Error("something was drawn") }
	err := Write(context.Background(), filepath.Join(file, "report"), o)
	require.ErrorContains(t, err, "write report: mkdir ")
	require.ErrorContains(t, err, "not a directory")
}

func TestOptionsThatMakeNoSenseAreErrors(t *testing.T) {
	for want, o := range map[string]Options{
		"draw report: a number is out of range":             {N: mostConnections + 1},
		`there is no chapter "x": there are herd, queueing`: {Only: []string{"x"}},
	} {
		require.ErrorContains(t, Write(context.Background(), t.TempDir(), o), want)
	}
	require.Error(t, Options{RPS: -1}.Validate())
	require.Error(t, Options{Capacity: -1}.Validate())
	require.NoError(t, Options{}.Validate())
}
