import io

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image
from rdkit import Chem
from rdkit.Chem import Descriptors, rdMolDescriptors
from rdkit.Chem.Draw import rdMolDraw2D

name = "4-Chloroacetanilide"
molecule = Chem.MolFromSmiles("CC(=O)Nc1ccc(Cl)cc1")

drawer = rdMolDraw2D.MolDraw2DCairo(560, 330)
drawer.drawOptions().bondLineWidth = 2
drawer.drawOptions().minFontSize = 20
drawer.DrawMolecule(molecule)
drawer.FinishDrawing()
structure = Image.open(io.BytesIO(drawer.GetDrawingText()))

rows = [
    ("Formula", rdMolDescriptors.CalcMolFormula(molecule)),
    ("Molar mass", f"{Descriptors.MolWt(molecule):.2f} g/mol"),
    ("Halogen", "Fluorine (F)"),
    ("H-bond donors", str(rdMolDescriptors.CalcNumHBD(molecule))),
    ("Rings", str(rdMolDescriptors.CalcNumRings(molecule))),
]

figure = plt.figure(figsize=(8.6, 4.2), dpi=100, facecolor="white")
figure.text(0.04, 0.91, name, fontsize=17, weight="bold", color="#1d3557")
figure.text(0.04, 0.845, "para-substituted anilide · 对位取代", fontsize=10.5, color="#66727f", family=["DejaVu Sans", "Noto Sans CJK SC"])
picture = figure.add_axes([0.02, 0.04, 0.6, 0.76])
picture.imshow(structure)
picture.axis("off")
for index, (key, value) in enumerate(rows):
    y = 0.70 - index * 0.125
    figure.text(0.64, y, key, fontsize=11, color="#66727f")
    figure.text(0.97, y, value, fontsize=11.5, ha="right", weight="bold")
    figure.add_artist(plt.Line2D([0.64, 0.97], [y - 0.045, y - 0.045], color="#d9dee3", linewidth=0.8))
figure.savefig("output.png")
