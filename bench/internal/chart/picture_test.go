package chart

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnSVGSaysWhatIsSeen(t *testing.T) {
	p := sample()
	got := texts(t, p)
	for _, want := range []string{
		p.Title, p.Note, "Load", "% of normal", "time, s", "400", "0.4", "Dials", "1,000", "A", "B",
	} {
		require.Contains(t, got, want)
	}
	elements := parse(t, p)
	require.Equal(t, "svg", elements[0].name)
	require.Equal(t, element{name: "title", attrs: map[string]string{}, text: p.Title}, elements[1], "for readers that cannot see it")
}

func TestTheLegendNamesEachSeriesOnce(t *testing.T) {
	got := texts(t, sample())
	for _, want := range []string{"one", "two & <three>", "server fails"} {
		n := 0
		for _, text := range got {
			if text == want {
				n++
			}
		}
		require.Equal(t, 1, n, want)
	}
}

func TestAnSVGRefersToNothingOutside(t *testing.T) {
	for _, e := range parse(t, sample()) {
		require.NotContains(t, []string{"image", "script", "style", "use", "a", "foreignObject"}, e.name)
		for name, value := range e.attrs {
			require.NotContains(t, name, "href")
			require.NotContains(t, value, "url(")
		}
	}
}

func TestThePageBehindAPictureIsWhite(t *testing.T) {
	elements := parse(t, sample())
	i := 0
	for elements[i].name != "path" {
		i++
	}
	width, height := sample().size()
	require.Equal(t, 720., float64(width))
	require.Equal(t, "M0,0L720,0L720,"+coordinate(height)+"L0,"+coordinate(height)+"Z", elements[i].attrs["d"])
	require.Contains(t, elements[i].attrs["style"], "fill:#FFFFFF")
}

// With a font that is wider than the one that was reckoned with, texts would run into each
// other if they had no width of their own.
func TestNoTextOfARowRunsIntoTheNext(t *testing.T) {
	type placed struct{ from, to float64 }
	rows := map[string][]placed{}
	for _, e := range parse(t, sample()) {
		if e.name != "text" || len(e.text) <= 3 {
			continue
		}
		from, err := strconv.ParseFloat(e.attrs["x"], 64)
		require.NoError(t, err)
		width, err := strconv.ParseFloat(e.attrs["textLength"], 64)
		require.NoError(t, err, e.text)
		require.Equal(t, "spacingAndGlyphs", e.attrs["lengthAdjust"])
		for _, other := range rows[e.attrs["y"]] {
			require.True(t, from >= other.to || from+width <= other.from, "%q lies on another text", e.text)
		}
		require.LessOrEqual(t, from+width, 720.)
		rows[e.attrs["y"]] = append(rows[e.attrs["y"]], placed{from, from + width})
	}
	require.Greater(t, len(rows), 3)
}

// A viewer may have a wider font, and not keep the widths that the SVG has.
func TestATextThatIsTooWideGoesOnInTheNextLine(t *testing.T) {
	p := sample()
	_, low := p.size()
	p.Title = strings.Repeat("a title that is too wide for its picture ", 4)
	p.Note = strings.Repeat("a note that is too wide for its picture ", 8)
	for _, panel := range p.Panels {
		panel.Title, panel.Note = strings.Repeat("panel title ", 8), strings.Repeat("note of a panel ", 8)
	}
	_, high := p.size()
	require.Greater(t, high, low)
	lines := map[string]int{}
	for _, e := range parse(t, p) {
		if e.name != "text" || e.attrs["textLength"] == "" {
			continue
		}
		from, err := strconv.ParseFloat(e.attrs["x"], 64)
		require.NoError(t, err)
		width, err := strconv.ParseFloat(e.attrs["textLength"], 64)
		require.NoError(t, err)
		edge := 720.
		if from < 300 && strings.Contains(e.text, "panel") {
			edge = 360
		}
		require.LessOrEqual(t, from+wider*width, edge, e.text)
		lines[map[bool]string{true: "panel", false: "head"}[strings.Contains(e.text, "panel")]]++
	}
	require.Greater(t, lines["head"], 4)
	require.Greater(t, lines["panel"], 3*2)
}

func TestALegendThatIsTooWideGoesOnInTheNextRow(t *testing.T) {
	p := sample()
	_, low := p.size()
	for i := range 20 {
		p.Legend = append(p.Legend, Style{Name: "a strategy with a long name " + strconv.Itoa(i), Color: Blue})
	}
	rows := flow(p.Legend, 704)
	require.Greater(t, len(rows), 4)
	for _, row := range rows {
		width := 0.
		for i, s := range row {
			width += float64(entryWidth(s))
			if i > 0 {
				width += legendEntry
			}
		}
		require.LessOrEqual(t, width, 704.)
	}
	_, high := p.size()
	require.Equal(t, float64(len(rows)-1)*legendRow, float64(high-low), "the panels keep their height")
}

func TestThePictureOfTheSameIsTheSame(t *testing.T) {
	var a, b bytes.Buffer
	require.NoError(t, sample().WriteSVG(&a))
	require.NoError(t, sample().WriteSVG(&b))
	require.Equal(t, a.String(), b.String())
}

func TestSaveWritesAFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, (&Picture{Name: "sample", Title: "small"}).Save(dir))
	svg, err := os.ReadFile(filepath.Join(dir, "sample.svg"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(svg), "<?xml"))
}

func TestSaveSaysWhichPictureItCannotSave(t *testing.T) {
	err := (&Picture{Name: "sample"}).Save(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "save picture sample: ")
}

func TestAPictureWithoutPanelsIsItsTitle(t *testing.T) {
	require.Equal(t, []string{"alone"}, texts(t, &Picture{Title: "alone"}))
}
