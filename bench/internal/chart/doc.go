// Package chart draws pictures of measurements as SVG: panels in a grid below a title and one
// legend.
//
// All pictures have this in common:
//
//   - The legend has a strip of its own, so that it covers no line.
//   - The colours are those of Okabe and Ito ("Color Universal Design", 2008), which most
//     colour-blind readers can tell apart; lines that may lie on each other differ in
//     their dashes too.
//   - The background is white: a picture looks the same on a dark page and on paper.
//   - A series has no more points than can be seen: of the points that fall onto one place
//     from left to right, the lowest and the highest are kept.
//   - A picture refers to nothing outside of it. It names its font and the width of each text.
//
// The same Picture gives the same bytes on every machine of one architecture.
package chart
