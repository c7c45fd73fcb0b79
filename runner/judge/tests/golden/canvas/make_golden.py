"""Writes the pictures in this folder, and golden.json: how a candidate comes to lie on the canvas of a reference.

Run: pip install "pillow==13.0.0"; python make_golden.py

The rule (VAO-Bench, appendix C.2), independent of the Rust code: the reference is scaled down to at most LONGEST on its
longest side; the candidate is scaled, up or down, by the smaller of the two ratios, and centred (floor) on white. Lengths
are rounded to the nearest pixel, halves up. Transparency is composited on white before anything is scaled.
`<case>.in.png` is the candidate, `<case>.out.png` the canvas with it. Where the reference itself is scaled,
`<case>.reference.png` is the canvas with that; the reference then is REFERENCES[case].
"""
import json
from fractions import Fraction
from math import floor

import PIL
from PIL import Image, ImageDraw

LONGEST = 1568


def drawing(w, h, mode="RGB"):
    """Lines, text, flat areas and a gradient: what makes resamplers differ."""
    picture = Image.new("RGB", (w, h), "white")
    draw = ImageDraw.Draw(picture)
    for x in range(w):
        draw.line([x, 0, x, h // 5], fill=(255 * x // w, 255 - 255 * x // w, 90))
    if min(w, h) < 12:
        return picture
    draw.rectangle([w // 8, h // 3, w // 2, h - h // 6], fill=(40, 90, 200), outline="black")
    draw.line([0, h - 1, w - 1, 0], fill=(200, 30, 30))
    draw.ellipse([w // 2, h // 2, w - 2, h - 2], outline=(0, 120, 0), fill=(250, 240, 160))
    draw.text((w // 3, h // 4), "58.2 kg", fill="black")
    if mode == "RGBA":
        picture.putalpha(Image.linear_gradient("L").resize((w, h)))
    return picture


# The size of the reference, and the candidate.
CASES = {
    "equal": ((60, 40), drawing(60, 40)),
    "up-wide": ((120, 60), drawing(50, 50)),
    "up-tall": ((41, 97), drawing(20, 31)),
    "down-wide": ((90, 30), drawing(160, 120)),
    "down-odd": ((77, 53), drawing(233, 131)),
    "same-shape": ((60, 40), drawing(90, 60)),
    "one-pixel-off": ((101, 67), drawing(100, 67)),
    "halves": ((100, 100), drawing(16, 2)),
    "tiny": ((30, 20), drawing(3, 2)),
    "thread": ((40, 24), drawing(700, 1)),
    "alpha": ((70, 50), drawing(90, 40, "RGBA")),
    "grey": ((50, 50), drawing(70, 60).convert("L")),
    "palette": ((50, 60), drawing(70, 60).convert("P", palette=Image.Palette.ADAPTIVE, colors=16)),
    "long-reference": ((2000, 40), drawing(300, 30)),
}
# Where the reference is longer than a canvas may be.
REFERENCES = {"long-reference": drawing(2000, 40)}


def rgb(picture):
    picture = picture.convert("RGBA")
    white = Image.new("RGBA", picture.size, "white")
    white.alpha_composite(picture)
    return white.convert("RGB")


def length(side, ratio):
    return max(1, floor(side * ratio + Fraction(1, 2)))


def canvas_of(w, h):
    ratio = min(Fraction(1), Fraction(LONGEST, max(w, h)))
    return (length(w, ratio), length(h, ratio))


def fit(picture, canvas):
    w, h = picture.size
    ratio = min(Fraction(canvas[0], w), Fraction(canvas[1], h))
    size = (length(w, ratio), length(h, ratio))
    scaled = rgb(picture).resize(size, Image.Resampling.LANCZOS)
    corner = ((canvas[0] - size[0]) // 2, (canvas[1] - size[1]) // 2)
    whole = Image.new("RGB", canvas, "white")
    whole.paste(scaled, corner)
    return whole, {"original": [w, h], "scale": float(ratio), "size": list(size), "x": corner[0], "y": corner[1]}


golden = {"pillow": PIL.__version__, "cases": {}}
for name, (reference, candidate) in CASES.items():
    candidate.save(f"{name}.in.png")
    canvas = canvas_of(*reference)
    whole, placement = fit(Image.open(f"{name}.in.png"), canvas)
    whole.save(f"{name}.out.png")
    golden["cases"][name] = {"reference": list(reference), "canvas": list(canvas), "placement": placement}
    if name in REFERENCES:
        REFERENCES[name].save(f"{name}.reference.in.png")
        fit(REFERENCES[name], canvas)[0].save(f"{name}.reference.png")
with open("golden.json", "w") as file:
    json.dump(golden, file, indent=1)
    file.write("\n")
