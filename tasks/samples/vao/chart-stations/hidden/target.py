import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

plt.rcParams["font.family"] = ["DejaVu Sans", "Noto Sans CJK JP"]

months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
stations = [
    ("Reykjavík", [0.1, 0.4, 1.1, 3.6, 6.9, 9.7, 11.6, 11.1, 8.3, 4.9, 2.0, 0.4], "#2b6cb0", "-", "o"),
    ("札幌 Sapporo", [-3.2, -2.7, 1.1, 7.3, 13.0, 17.0, 21.1, 22.3, 18.6, 12.1, 5.2, -0.9], "#dd6b20", "--", "s"),
    ("Montréal", [-9.2, -7.6, -1.8, 6.5, 13.9, 19.0, 21.7, 20.7, 16.0, 9.1, 2.4, -5.3], "#805ad5", "-", "^"),
]

figure, axes = plt.subplots(figsize=(8.2, 4.6), dpi=100)
for name, values, colour, line, marker in stations:
    axes.plot(months, values, color=colour, linestyle=line, marker=marker, markersize=5, linewidth=2, label=name)
axes.axhline(0, color="#666666", linewidth=0.8)
axes.set_ylabel("Mean temperature (°C)")
axes.set_title("Monthly mean temperature, 1991–2020", fontsize=13, pad=10)
axes.set_ylim(-12, 26)
axes.grid(color="#e5e5e5")
axes.legend(loc="upper left", frameon=True)
axes.spines[["top", "right"]].set_visible(False)
figure.tight_layout()
figure.savefig("output.png")
