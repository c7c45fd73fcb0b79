import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

plt.rcParams["font.family"] = ["Noto Sans CJK JP", "DejaVu Sans"]

days = ["Mon 月", "Tue 火", "Wed 水", "Thu 木", "Fri 金", "Sat 土", "Sun 日"]
visitors = [250, 280, 350, 680, 480, 610, 500]

figure, axes = plt.subplots(figsize=(8.4, 4.8), dpi=100)
colours = ["#4f83b5"] * 5 + ["#e07b39", "#4f83b5"]
bars = axes.bar(days, visitors, color=colours, width=0.64, zorder=2)
axes.bar_label(bars, fmt="%d", padding=3, fontsize=10)
axes.axhline(400, color="#333333", linestyle="--", linewidth=1.3, zorder=3, label="Mean 400 per day")
axes.set_ylim(0, 760)
axes.set_ylabel("Visitors")
axes.set_title("Museum visitors, week 47 (total 2,800)", fontsize=13, pad=12)
axes.legend(loc="upper left", frameon=False)
axes.grid(axis="y", color="#dddddd", zorder=0)
axes.spines[["top", "right"]].set_visible(False)
axes.text(0.995, 0.955, "Busiest day: Sat 土", transform=axes.transAxes, ha="right", fontsize=10, color="#b3541e")
figure.tight_layout()
figure.savefig("output.png")
