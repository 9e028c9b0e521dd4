package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Picture is a title, a legend and panels.
type Picture struct {
	Name    string   // of its files, without what comes after the dot
	Title   string   // what is seen
	Note    string   // under what conditions; smaller
	Legend  []Style  // in this order; those with equal names are shown once
	Columns int      // of panels; default 1
	Width   float64  // in points of 1/72 inch; default 720
	Height  float64  // of a row of panels, in points; default 170
	Panels  []*Panel // from left to right, then down
}

// DPI is the resolution of a PNG that [Picture.Save] writes: twice that of a screen on
// which the SVG has its own size.
const DPI = 144

// The fixed distances, in points.
const (
	margin   = 8
	between  = 14 // panels
	titleGap = 5  // below title, note and legend
)

// Save writes the picture into a directory as NAME.svg and NAME.png.
func (p *Picture) Save(dir string) error {
	var svg, png bytes.Buffer
	if err := p.WriteSVG(&svg); err != nil {
		return err
	}
	if err := p.WritePNG(&png, DPI); err != nil {
		return err
	}
	for ending, b := range map[string]*bytes.Buffer{".svg": &svg, ".png": &png} {
		if err := os.WriteFile(filepath.Join(dir, p.Name+ending), b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("save picture %s: %w", p.Name, err)
		}
	}
	return nil
}

// WriteSVG writes it as SVG, with its title as the accessible name.
func (p *Picture) WriteSVG(w io.Writer) error {
	width, height := p.size()
	c := &svgCanvas{Canvas: vgsvg.New(width, height)}
	p.draw(draw.NewCanvas(c, width, height))
	svg, err := c.finish(p.Title)
	if err != nil {
		return fmt.Errorf("draw picture %s: %w", p.Name, err)
	}
	_, err = w.Write(svg)
	return err
}

// WritePNG writes it as PNG with so many dots per inch.
func (p *Picture) WritePNG(w io.Writer, dpi int) error {
	width, height := p.size()
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
	p.draw(draw.NewCanvas(c, width, height))
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(w); err != nil {
		return fmt.Errorf("draw picture %s: %w", p.Name, err)
	}
	return nil
}

func (p *Picture) columns() int { return max(1, p.Columns) }

func (p *Picture) rows() int { return (len(p.Panels) + p.columns() - 1) / p.columns() }

// size is that of the whole picture.
func (p *Picture) size() (width, height vg.Length) {
	width, height = vg.Length(orDefault(p.Width, 720)), vg.Length(orDefault(p.Height, 170))
	rows := vg.Length(max(p.rows(), 1))
	return width, 2*margin + p.head(width) + rows*height + (rows-1)*between
}

// head is the height of what is above the panels.
func (p *Picture) head(width vg.Length) vg.Length {
	h := vg.Length(0)
	for _, t := range p.texts(width - 2*margin) {
		h += t.height()
	}
	if len(p.Legend) > 0 {
		h += vg.Length(len(flow(p.Legend, width-2*margin)))*legendRow + titleGap
	}
	return h
}

// paragraph is a text above the panels, in lines.
type paragraph struct {
	lines []string
	style textStyle
}

// texts returns the title and the note, in lines that are not wider than width.
func (p *Picture) texts(width vg.Length) []paragraph {
	return []paragraph{{wrap(titleText, p.Title, width), titleText}, {wrap(noteText, p.Note, width), noteText}}
}

// height includes the distance to what is below; it is 0 if there are no lines.
func (t paragraph) height() vg.Length {
	if len(t.lines) == 0 {
		return 0
	}
	return vg.Length(len(t.lines))*t.style.FontExtents().Height + titleGap
}

func (p *Picture) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, margin, -margin, margin, -margin)
	for _, t := range p.texts(c.Size().X) {
		for i, line := range t.lines {
			c.FillText(t.style, vg.Point{X: c.Min.X, Y: c.Max.Y - vg.Length(i)*t.style.FontExtents().Height}, line)
		}
		c.Max.Y -= t.height()
	}
	if len(p.Legend) > 0 {
		c.Max.Y -= drawLegend(c, p.Legend) + titleGap
	}
	if len(p.Panels) == 0 {
		return
	}
	plots := make([][]*plot.Plot, p.rows())
	for i := range plots {
		plots[i] = make([]*plot.Plot, p.columns())
	}
	columns := vg.Length(p.columns())
	tile := (c.Size().X - (columns-1)*between) / columns
	for i, panel := range p.Panels {
		plots[i/p.columns()][i%p.columns()] = panel.plot(tile)
	}
	tiles := draw.Tiles{Rows: p.rows(), Cols: p.columns(), PadX: between, PadY: between}
	for i, row := range plot.Align(plots, tiles, c) {
		for j, canvas := range row {
			if plots[i][j] != nil {
				plots[i][j].Draw(canvas)
			}
		}
	}
}

func orDefault(x, other float64) float64 {
	if x == 0 {
		return other
	}
	return x
}
