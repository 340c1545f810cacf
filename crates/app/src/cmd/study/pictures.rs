//! A study's results as pictures (SVG). White ground, so that they can be read on light and dark pages; arms differ in
//! colour (Okabe and Ito's, safe for colour-blind eyes) and are named at their lines.

use std::path::Path;

use anyhow::anyhow;
use parallel_r1::study::Results;
use parallel_r1::study::results::{ArmResults, Setting};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const SIZE: (u32, u32) = (760, 420);
const COLOURS: [RGBColor; 7] = [
    RGBColor(85, 91, 99),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 128, 96),
    RGBColor(176, 87, 141),
    RGBColor(160, 107, 0),
    RGBColor(47, 143, 196),
];
/// Gaps in the lines, in pixels, so that colour alone need not tell them apart; 0 for none.
const GAPS: [u32; 7] = [0, 2, 5, 8, 3, 12, 6];
const TEXT: RGBColor = RGBColor(22, 25, 29);

/// A line of a picture.
struct Line {
    name: String,
    colour: RGBColor,
    gap: u32,
    points: Vec<(f64, f64)>,
}

impl Line {
    fn new(name: String, i: usize, points: Vec<(f64, f64)>) -> Self {
        Self { name, colour: COLOURS[i % COLOURS.len()], gap: GAPS[i % GAPS.len()], points }
    }
}

/// Draws all pictures of a study into a folder.
pub(super) fn draw(results: &Results, folder: &Path) -> anyhow::Result<()> {
    let by = |curve: fn(&Setting) -> &[(usize, f64)]| -> Vec<Line> {
        lines(results, |_, setting| curve(setting).iter().map(|&(x, y)| (x as f64, 100.0 * y)).collect())
    };
    let tokens = "tokens of an answer, at most";
    picture(&folder.join("budget.svg"), "Accuracy, mean of all tiers (%)", tokens, &by(|s| &s.by_budget))?;
    let latency = "tokens of an answer that follow one another, at most";
    picture(&folder.join("latency.svg"), "Accuracy, mean of all tiers (%)", latency, &by(|s| &s.by_latency))?;
    let hardest = format!("Accuracy on {} (%)", results.hardest.join(" and "));
    picture(&folder.join("hardest.svg"), &hardest, latency, &by(|s| &s.hardest_by_latency))?;
    let over = |value: fn(&ArmResults) -> Vec<(u64, f64)>| -> Vec<Line> {
        let line = |(i, arm): (usize, &ArmResults)| {
            let points = value(arm).into_iter().map(|(x, y)| (x as f64 / 1e6, 100.0 * y)).collect();
            Line::new(arm.name.clone(), i, points)
        };
        results.arms.iter().enumerate().map(line).collect()
    };
    let sampled = "million tokens sampled in training";
    let accuracy = over(|arm| arm.curve.iter().map(|point| (point.tokens, point.accuracy)).collect());
    picture(&folder.join("training.svg"), "Right responses in training (%)", sampled, &accuracy)?;
    let ratio = over(|arm| arm.curve.iter().map(|point| (point.tokens, point.parallel_ratio)).collect());
    picture(&folder.join("parallel-ratio.svg"), "Responses with a block in training (%)", sampled, &ratio)?;
    tiers(&folder.join("tiers.svg"), results)
}

/// Every tier's accuracy by arm, each with as many paths as it has been given most: a dot with its interval.
fn tiers(file: &Path, results: &Results) -> anyhow::Result<()> {
    let draw = || -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::new(file, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let settings: Vec<&Setting> = results.arms.iter().filter_map(|arm| arm.settings.last()).collect();
        let names: Vec<&str> =
            settings.first().map_or(vec![], |s| s.tiers.iter().map(|tier| tier.name.as_str()).collect());
        let mut chart = ChartBuilder::on(&root)
            .caption("Accuracy by tier (%), 95 % intervals", ("sans-serif", 16, &TEXT))
            .margin(12)
            .margin_right(150)
            .x_label_area_size(44)
            .y_label_area_size(44)
            .build_cartesian_2d(0.0..names.len().max(1) as f64, 0.0..100.0)?;
        let mesh = &mut chart.configure_mesh();
        mesh.y_label_formatter(&|y| number(*y)).disable_x_mesh().disable_x_axis().label_style((
            "sans-serif",
            13,
            &TEXT,
        ));
        mesh.light_line_style(WHITE).bold_line_style(RGBColor(216, 220, 226)).draw()?;
        let step = 0.8 / settings.len().max(1) as f64;
        for (i, setting) in settings.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            for (t, tier) in setting.tiers.iter().enumerate() {
                let (x, of) = (t as f64 + 0.1 + step * (i as f64 + 0.5), tier.accuracy);
                let ends = [(x, 100.0 * of.low), (x, 100.0 * of.high)];
                chart.draw_series(LineSeries::new(ends, colour.stroke_width(2)))?;
                chart.draw_series([Circle::new((x, 100.0 * of.value), 4, colour.filled())])?;
            }
        }
        let below = ("sans-serif", 13, &TEXT).into_text_style(&root).pos(Pos::new(HPos::Center, VPos::Top));
        for (t, name) in names.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(t as f64 + 0.5, 0.0));
            root.draw(&Text::new(name.to_string(), (x, y + 8), below.clone()))?;
        }
        for (i, arm) in results.arms.iter().enumerate() {
            let style = ("sans-serif", 13, &COLOURS[i % COLOURS.len()]).into_text_style(&root);
            let (x, _) = chart.backend_coord(&(names.len() as f64, 100.0));
            root.draw(&Text::new(format!("{}. {}", i + 1, arm.name), (x + 8, 40 + 20 * i as i32), style))?;
        }
        root.present()?;
        Ok(())
    };
    draw().map_err(|error| anyhow!("{}: {error}", file.display()))
}

/// A line for each arm, with as many paths as it has been given most.
fn lines(results: &Results, points: impl Fn(&ArmResults, &Setting) -> Vec<(f64, f64)>) -> Vec<Line> {
    let line = |(i, arm): (usize, &ArmResults)| {
        let setting = arm.settings.last()?;
        let paths = if arm.parallel { format!(", {} paths", setting.paths) } else { String::new() };
        let name = format!("{}{paths}", arm.name);
        Some(Line::new(name, i, points(arm, setting)))
    };
    results.arms.iter().enumerate().filter_map(line).collect()
}

fn picture(file: &Path, title: &str, below: &str, lines: &[Line]) -> anyhow::Result<()> {
    let draw = || -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::new(file, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let points = || lines.iter().flat_map(|line| &line.points);
        let right = points().map(|point| point.0).fold(0.0, f64::max).max(1e-9);
        let top = points().map(|point| point.1).fold(0.0, f64::max).max(1.0) * 1.08;
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 16, &TEXT))
            .margin(12)
            .margin_right(150)
            .x_label_area_size(44)
            .y_label_area_size(44)
            .build_cartesian_2d(0.0..right, 0.0..top)?;
        let mesh = &mut chart.configure_mesh();
        mesh.x_label_formatter(&|x| number(*x)).y_label_formatter(&|y| number(*y));
        mesh.x_desc(below).label_style(("sans-serif", 13, &TEXT)).axis_desc_style(("sans-serif", 13, &TEXT));
        mesh.light_line_style(WHITE).bold_line_style(RGBColor(216, 220, 226)).draw()?;
        for line in lines {
            let (points, style) = (line.points.iter().copied(), line.colour.stroke_width(2));
            match line.gap {
                0 => chart.draw_series(LineSeries::new(points, style))?,
                gap => chart.draw_series(DashedLineSeries::new(points, 10, gap, style))?,
            };
        }
        for (line, y) in names(lines, top) {
            let style = ("sans-serif", 13, &line.colour)
                .into_text_style(&root)
                .pos(Pos::new(HPos::Left, VPos::Center));
            let (x, y) = chart.backend_coord(&(right, y));
            root.draw(&Text::new(line.name.clone(), (x + 6, y), style))?;
        }
        root.present()?;
        Ok(())
    };
    draw().map_err(|error| anyhow!("{}: {error}", file.display()))
}

/// A number at an axis: to a tenth, without a zero behind the point.
fn number(value: f64) -> String {
    format!("{}", (10.0 * value).round() / 10.0)
}

/// Where the names of the lines stand: at their ends, but neither on each other nor above the picture.
fn names(lines: &[Line], top: f64) -> Vec<(&Line, f64)> {
    let apart = top * 0.05;
    let mut ends: Vec<(&Line, f64)> =
        lines.iter().filter_map(|line| Some((line, line.points.last()?.1))).collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    for i in 1..ends.len() {
        ends[i].1 = ends[i].1.max(ends[i - 1].1 + apart);
    }
    let beyond = ends.last().map_or(0.0, |(_, y)| (y - top).max(0.0));
    ends.into_iter().map(|(line, y)| (line, y - beyond)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_apart() {
        let line = |end: f64| Line::new(String::new(), 0, vec![(0.0, end)]);
        let lines = [line(50.0), line(10.0), line(51.0), line(51.5)];
        let places: Vec<f64> = names(&lines, 100.0).into_iter().map(|(_, y)| y).collect();
        assert_eq!(places, [10.0, 50.0, 55.0, 60.0]);
        let high = [line(98.0), line(99.0)];
        assert_eq!(names(&high, 100.0).into_iter().map(|(_, y)| y).collect::<Vec<_>>(), [95.0, 100.0]);
    }

    #[test]
    fn a_picture_names_its_lines() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("picture.svg");
        let line = Line::new("seen".into(), 0, vec![(0.0, 1.0), (10.0, 30.0)]);
        picture(&file, "Accuracy", "tokens", &[line]).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        for part in ["<svg", "polyline", "seen", "Accuracy", "tokens", "#555B63"] {
            assert!(text.contains(part), "{part}");
        }
    }
}
